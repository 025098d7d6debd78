// A go-waku node that obeys: a JSON object with an id on each line in, one with the same id out.
//
// The first line out, id 0, names its peer id and addresses. Everything that it does is done by
// go-waku's own code: relay, filter, lightpush and store as a service, and each of them as a client.
// It ends when its input ends.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/waku-org/go-waku/waku/persistence"
	"github.com/waku-org/go-waku/waku/persistence/sqlite"
	"github.com/waku-org/go-waku/waku/v2/node"
	"github.com/waku-org/go-waku/waku/v2/protocol"
	"github.com/waku-org/go-waku/waku/v2/protocol/filter"
	"github.com/waku-org/go-waku/waku/v2/protocol/legacy_store"
	"github.com/waku-org/go-waku/waku/v2/protocol/lightpush"
	"github.com/waku-org/go-waku/waku/v2/protocol/pb"
	"github.com/waku-org/go-waku/waku/v2/protocol/relay"
	"github.com/waku-org/go-waku/waku/v2/protocol/store"
)

const (
	patience     = 20 * time.Second
	longestLine  = 16 << 20
	waitForHeard = 50 * time.Millisecond
)

// message is a Waku message as it goes over our lines.
type message struct {
	PubsubTopic  string `json:"pubsub"`
	ContentTopic string `json:"topic"`
	Payload      []byte `json:"payload"`
	Timestamp    int64  `json:"timestamp"`
	Meta         []byte `json:"meta,omitempty"`
	Ephemeral    bool   `json:"ephemeral,omitempty"`
	Hash         string `json:"hash,omitempty"`
}

// command is what may be asked; which fields count depends on Name.
type command struct {
	message
	ID            int      `json:"id"`
	Name          string   `json:"command"`
	Address       string   `json:"address"`
	Peer          string   `json:"peer"`
	ContentTopics []string `json:"topics"`
	Count         int      `json:"count"`
	Limit         uint64   `json:"limit"`
	Forward       bool     `json:"forward"`
}

type answer map[string]any

// inbox keeps what came, in the order in which it came.
type inbox struct {
	mutex    sync.Mutex
	messages []message
}

func (box *inbox) collect(envelopes <-chan *protocol.Envelope) {
	for envelope := range envelopes {
		box.mutex.Lock()
		box.messages = append(box.messages, shown(envelope))
		box.mutex.Unlock()
	}
}

// wait returns all there is as soon as there are count, or when patience is over.
func (box *inbox) wait(ctx context.Context, count int) []message {
	for {
		box.mutex.Lock()
		found := append([]message{}, box.messages...)
		box.mutex.Unlock()
		if len(found) >= count || ctx.Err() != nil {
			return found
		}
		time.Sleep(waitForHeard)
	}
}

type peerNode struct {
	waku     *node.WakuNode
	archive  *persistence.DBStore
	relayed  inbox
	filtered inbox
}

func shown(envelope *protocol.Envelope) message {
	made := plain(envelope.Message(), envelope.PubsubTopic())
	hash := envelope.Hash()
	made.Hash = hex.EncodeToString(hash[:])
	return made
}

func plain(waku *pb.WakuMessage, pubsubTopic string) message {
	return message{
		PubsubTopic:  pubsubTopic,
		ContentTopic: waku.ContentTopic,
		Payload:      waku.Payload,
		Timestamp:    waku.GetTimestamp(),
		Meta:         waku.Meta,
		Ephemeral:    waku.GetEphemeral(),
	}
}

func (given message) waku() *pb.WakuMessage {
	made := &pb.WakuMessage{
		Payload:      given.Payload,
		ContentTopic: given.ContentTopic,
		Meta:         given.Meta,
		Timestamp:    &given.Timestamp,
	}
	if given.Ephemeral {
		made.Ephemeral = &given.Ephemeral
	}
	return made
}

// start makes a node with every service on; with requests 0, what one peer may ask is go-waku's own limit.
func start(ctx context.Context, cluster uint16, shards []uint16, requests, minPeers int) (*peerNode, error) {
	db, err := sqlite.NewDB(":memory:", zap.NewNop())
	if err != nil {
		return nil, err
	}
	archive, err := persistence.NewDBStore(prometheus.NewRegistry(), zap.NewNop(),
		persistence.WithDB(db), persistence.WithMigrations(sqlite.Migrations))
	if err != nil {
		return nil, err
	}
	filters, pushes := []filter.Option{}, []lightpush.Option{}
	if requests > 0 {
		filters = append(filters, filter.WithFullNodeRateLimiter(rate.Limit(requests), requests))
		pushes = append(pushes, lightpush.WithRateLimiter(rate.Limit(requests), requests))
	}
	waku, err := node.New(
		node.WithLogger(zap.NewNop()),
		node.WithHostAddress(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}),
		node.WithWebsockets("127.0.0.1", 0),
		node.WithClusterID(cluster),
		node.WithShards(shards),
		node.WithWakuRelayAndMinPeers(minPeers),
		node.WithWakuFilterFullNode(filters...),
		node.WithWakuFilterLightNode(),
		node.WithLightPush(pushes...),
		node.WithWakuStore(),
		node.WithMessageProvider(archive),
	)
	if err != nil {
		return nil, err
	}
	if err := waku.Start(ctx); err != nil {
		return nil, err
	}
	made := &peerNode{waku: waku, archive: archive}
	for _, shard := range shards {
		topic := protocol.NewStaticShardingPubsubTopic(cluster, shard).String()
		subscriptions, err := waku.Relay().Subscribe(ctx, protocol.NewContentFilter(topic))
		if err != nil {
			return nil, err
		}
		for _, subscription := range subscriptions {
			go made.relayed.collect(subscription.Ch)
		}
	}
	return made, nil
}

func (own *peerNode) addresses() []string {
	found := []string{}
	for _, address := range own.waku.ListenAddresses() {
		found = append(found, address.String())
	}
	return found
}

// version is go-waku's, as it was built in.
func version() string {
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, module := range built.Deps {
			if module.Path == "github.com/waku-org/go-waku" {
				return module.Version
			}
		}
	}
	return ""
}

// obey does one thing; an error becomes an answer, not an end.
func (own *peerNode) obey(ctx context.Context, asked command) (answer, error) {
	switch asked.Name {
	case "dial":
		return answer{}, own.waku.DialPeer(ctx, asked.Address)
	case "peers":
		return own.peers(asked.PubsubTopic), nil
	case "publish":
		hash, err := own.waku.Relay().Publish(ctx, asked.waku(), relay.WithPubSubTopic(asked.PubsubTopic))
		return answer{"hash": hex.EncodeToString(hash[:])}, err
	case "relayed":
		return answer{"messages": own.relayed.wait(ctx, asked.Count)}, nil
	case "filtered":
		return answer{"messages": own.filtered.wait(ctx, asked.Count)}, nil
	case "archived":
		return own.archived(ctx, asked.Count)
	}
	id, err := peer.Decode(asked.Peer)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", asked.Name, err)
	}
	switch asked.Name {
	case "subscribe":
		return own.subscribe(ctx, id, asked)
	case "unsubscribe":
		return own.unsubscribe(ctx, id, asked)
	case "ping":
		return answer{}, own.waku.FilterLightnode().Ping(ctx, id)
	case "push":
		hash, err := own.waku.Lightpush().Publish(ctx, asked.waku(),
			lightpush.WithPeer(id), lightpush.WithPubSubTopic(asked.PubsubTopic))
		return answer{"hash": hex.EncodeToString(hash[:])}, err
	case "history":
		return own.history(ctx, id, asked)
	case "history3":
		return own.history3(ctx, id, asked)
	}
	return nil, errors.New("unknown command " + asked.Name)
}

// peers names who is connected and who of them has subscribed to the pubsub topic.
func (own *peerNode) peers(pubsubTopic string) answer {
	connected, subscribed := []string{}, []string{}
	for _, id := range own.waku.Host().Network().Peers() {
		connected = append(connected, id.String())
	}
	for _, id := range own.waku.Relay().PubSub().ListPeers(pubsubTopic) {
		subscribed = append(subscribed, id.String())
	}
	return answer{"connected": connected, "subscribed": subscribed}
}

func (own *peerNode) archived(ctx context.Context, count int) (answer, error) {
	for {
		held, err := own.archive.GetAll()
		if err != nil {
			return nil, err
		}
		if len(held) < count && ctx.Err() == nil {
			time.Sleep(waitForHeard)
			continue
		}
		found := []message{}
		for _, one := range held {
			found = append(found, plain(one.Message, one.PubsubTopic))
		}
		return answer{"messages": found}, nil
	}
}

func (own *peerNode) subscribe(ctx context.Context, id peer.ID, asked command) (answer, error) {
	wanted := protocol.NewContentFilter(asked.PubsubTopic, asked.ContentTopics...)
	subscriptions, err := own.waku.FilterLightnode().Subscribe(ctx, wanted, filter.WithPeer(id))
	if err != nil {
		return nil, err
	}
	for _, subscription := range subscriptions {
		go own.filtered.collect(subscription.C)
	}
	return answer{}, nil
}

func (own *peerNode) unsubscribe(ctx context.Context, id peer.ID, asked command) (answer, error) {
	unwanted := protocol.NewContentFilter(asked.PubsubTopic, asked.ContentTopics...)
	result, err := own.waku.FilterLightnode().Unsubscribe(ctx, unwanted, filter.WithPeer(id))
	if err != nil {
		return nil, err
	}
	for _, failure := range result.Errors() {
		if failure.Err != nil {
			return nil, failure.Err
		}
	}
	return answer{}, nil
}

// history reads page after page until the Store says that there are no more.
func (own *peerNode) history(ctx context.Context, id peer.ID, asked command) (answer, error) {
	legacy := own.waku.LegacyStore()
	query := legacy_store.Query{PubsubTopic: asked.PubsubTopic, ContentTopics: asked.ContentTopics}
	result, err := legacy.Query(ctx, query,
		legacy_store.WithPeer(id), legacy_store.WithPaging(asked.Forward, asked.Limit))
	if err != nil {
		return nil, err
	}
	pages := [][]message{}
	for {
		page := []message{}
		for _, one := range result.Messages {
			page = append(page, plain(one, asked.PubsubTopic))
		}
		pages = append(pages, page)
		if result.IsComplete() {
			return answer{"pages": pages}, nil
		}
		if result, err = legacy.Next(ctx, result); err != nil {
			return nil, err
		}
	}
}

// history3 does the same by 3.0.0, and names the hashes that the Store gave.  With a hash it asks
// for that message alone.
func (own *peerNode) history3(ctx context.Context, id peer.ID, asked command) (answer, error) {
	criteria, err := criteriaOf(asked)
	if err != nil {
		return nil, err
	}
	result, err := own.waku.Store().Request(ctx, criteria,
		store.WithPeer(id), store.WithPaging(asked.Forward, asked.Limit), store.SkipRateLimit())
	if err != nil {
		return nil, err
	}
	pages := [][]message{}
	for !result.IsComplete() {
		page := []message{}
		for _, one := range result.Messages() {
			made := plain(one.Message, one.GetPubsubTopic())
			made.Hash = hex.EncodeToString(one.MessageHash)
			page = append(page, made)
		}
		pages = append(pages, page)
		if err = result.Next(ctx, store.SkipRateLimit()); err != nil {
			return nil, err
		}
	}
	return answer{"pages": pages}, nil
}

func criteriaOf(asked command) (store.Criteria, error) {
	if asked.Hash == "" {
		wanted := protocol.NewContentFilter(asked.PubsubTopic, asked.ContentTopics...)
		return store.FilterCriteria{ContentFilter: wanted}, nil
	}
	hash, err := hex.DecodeString(asked.Hash)
	if err != nil {
		return nil, err
	}
	return store.MessageHashCriteria{MessageHashes: []pb.MessageHash{pb.ToMessageHash(hash)}}, nil
}

func shardNumbers(list string) ([]uint16, error) {
	numbers := []uint16{}
	for _, text := range strings.Split(list, ",") {
		number, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, uint16(number))
	}
	return numbers, nil
}

func run() error {
	cluster := flag.Uint("cluster", 42, "cluster")
	shardList := flag.String("shards", "0,1,2,3,4,5,6,7", "shards of the cluster that are relayed")
	requests := flag.Int("requests", 0, "what one peer may ask filter and lightpush per second; 0: go-waku's own limit")
	minPeers := flag.Int("min-peers", 0, "relay peers without which nothing is published")
	flag.Parse()
	shards, err := shardNumbers(*shardList)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	own, err := start(ctx, uint16(*cluster), shards, *requests, *minPeers)
	if err != nil {
		return err
	}
	defer own.waku.Stop()
	answers := json.NewEncoder(os.Stdout)
	hello := answer{"id": 0, "peer": own.waku.ID(), "addresses": own.addresses(), "version": version()}
	if err := answers.Encode(hello); err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 64<<10), longestLine)
	for lines.Scan() {
		var asked command
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		limited, done := context.WithTimeout(ctx, patience)
		said, err := own.obey(limited, asked)
		done()
		if err != nil {
			said = answer{"failed": err.Error()}
		}
		said["id"] = asked.ID
		if err := answers.Encode(said); err != nil {
			return err
		}
	}
	return lines.Err()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
