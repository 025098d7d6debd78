<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="fr">
<context>
    <name></name>
    <message>
        <source>&quot;auto&quot; or an IPv4 or IPv6 address in quotes, such as &quot;127.0.0.1&quot;</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%n Stores</source>
        <comment>%n Store</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n authors told different people different things; both are kept.</source>
        <comment>%n author told different people different things; both are kept.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n bytes</source>
        <comment>%n byte</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n claims of what somebody holds that cannot be true; refused.</source>
        <comment>%n claim of what somebody holds that cannot be true; refused.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n connections closed to make room: of those that misbehaved, or of the address that had most.</source>
        <comment>%n connection closed to make room: of those that misbehaved, or of the address that had most.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n connections for which there was no room; refused.</source>
        <comment>%n connection for which there was no room; refused.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n connections from an address that has begun too many at once; refused.</source>
        <comment>%n connection from an address that has begun too many at once; refused.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n connections from an address that has its share already; refused.</source>
        <comment>%n connection from an address that has its share already; refused.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n connections refused because too many were being made at once.</source>
        <comment>%n connection refused because too many were being made at once.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n conversations</source>
        <comment>%n conversation</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n days</source>
        <comment>%n day</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n earlier messages arrived</source>
        <comment>%n earlier message arrived</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n entries of its answer could not be used</source>
        <comment>%n entry of its answer could not be used</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n files</source>
        <comment>%n file</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n files go out with the message: {names}</source>
        <comment>Goes out with the message: {names}</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n handshakes that went on for too long and made room for another.</source>
        <comment>%n handshake that went on for too long and made room for another.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n members</source>
        <comment>%n member</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages</source>
        <comment>%n message</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages beyond what one author may send in a day; kept aside, or known by their ids alone.</source>
        <comment>%n message beyond what one author may send in a day; kept aside, or known by their ids alone.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages could not be sent yet. Nothing is lost: sending goes on when you start Causerie again.</source>
        <comment>%n message could not be sent yet. Nothing is lost: sending goes on when you start Causerie again.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages dated by a wrong clock and said again; the copy took their place.</source>
        <comment>%n message dated by a wrong clock and said again; the copy took their place.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages from a peer that says so much that the next ones had to wait.</source>
        <comment>%n message from a peer that says so much that the next ones had to wait.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages from the future between two people; held until their time.</source>
        <comment>%n message from the future between two people; held until their time.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages from the future by this device&apos;s clock; held until their time.</source>
        <comment>%n message from the future by this device&apos;s clock; held until their time.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages from the future for which there was no room; fetched again later.</source>
        <comment>%n message from the future for which there was no room; fetched again later.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages held from the future that made room for sooner ones; fetched again later.</source>
        <comment>%n message held from the future that made room for sooner ones; fetched again later.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages held from the future whose time has come.</source>
        <comment>%n message held from the future whose time has come.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages known here already, with another history under the same id; the first stays.</source>
        <comment>%n message known here already, with another history under the same id; the first stays.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages known to be beyond that, that came once more; ignored.</source>
        <comment>%n message known to be beyond that, that came once more; ignored.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages lost</source>
        <comment>%n message lost</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages mention you</source>
        <comment>%n message mentions you</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages missing</source>
        <comment>%n message missing</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages numbered in a way that cannot be; refused.</source>
        <comment>%n message numbered in a way that cannot be; refused.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages of another channel; ignored.</source>
        <comment>%n message of another channel; ignored.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages of open channels that waited for each other; shown in the order of their times.</source>
        <comment>%n message of an open channel that waited for what waits for it; shown at its time.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages of yours never got out and will be lost.</source>
        <comment>%n message of yours never got out and will be lost.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages padded in another way than all others; refused.</source>
        <comment>%n message padded in another way than all others; refused.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages taken out of the archive to make room: of whoever had put most into it.</source>
        <comment>%n message taken out of the archive to make room: of whoever had put most into it.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages that came faster than the archive could take them; not archived.</source>
        <comment>%n message that came faster than the archive could take them; not archived.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages that came once more, sealed as before; ignored.</source>
        <comment>%n message that came once more, sealed as before; ignored.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages that claimed to take the place of another, and may not; both stay.</source>
        <comment>%n message that claimed to take the place of another, and may not; both stay.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages wait behind</source>
        <comment>%n message waits behind</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages with a key made to fit more than one secret; refused.</source>
        <comment>%n message with a key made to fit more than one secret; refused.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages with an id that does not belong to what was said; refused.</source>
        <comment>%n message with an id that does not belong to what was said; refused.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages with something packed in that nobody can read; refused.</source>
        <comment>%n message with something packed in that nobody can read; refused.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages with something packed into their content that nobody can read; refused.</source>
        <comment>%n message with something packed into their content that nobody can read; refused.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n missing</source>
        <comment>%n missing</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n new messages</source>
        <comment>%n new message</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n not sent</source>
        <comment>%n not sent</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n other messages, lost longer ago, not listed</source>
        <comment>%n other message, lost longer ago, not listed</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n other records</source>
        <comment>%n other record</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n others</source>
        <comment>%n other</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n people</source>
        <comment>%n person</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n places could not be read; each held one row or more. Others may still have what is missing, and it is asked for.</source>
        <comment>%n place could not be read; it held one row or more. Others may still have what is missing, and it is asked for.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n questions for history from somebody who has had enough for this minute; they may ask again.</source>
        <comment>%n question for history from somebody who has had enough for this minute; they may ask again.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n questions for history that took too long to answer; refused.</source>
        <comment>%n question for history that took too long to answer; refused.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n questions to this device&apos;s services that came too fast; refused.</source>
        <comment>%n question to this device&apos;s services that came too fast; refused.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n questions to this device&apos;s services that were begun and not asked; refused.</source>
        <comment>%n question to this device&apos;s services that were begun and not asked; refused.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n questions to this device&apos;s services that were too many at once; refused.</source>
        <comment>%n question to this device&apos;s services that were too many at once; refused.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n reactions, edits or deletions that say nothing readable; ignored.</source>
        <comment>%n reaction, edit or deletion that says nothing readable; ignored.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n requests to talk for which there was no room; they come again.</source>
        <comment>%n request to talk for which there was no room; they come again.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n requests to talk from members of one group for which there was no room; they come again.</source>
        <comment>%n request to talk from members of one group for which there was no room; they come again.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n requests to talk from strangers for which there was no room; they come again.</source>
        <comment>%n request to talk from strangers for which there was no room; they come again.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n service nodes</source>
        <comment>%n service node</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n times somebody wanted to edit or delete what another wrote; ignored.</source>
        <comment>%n time somebody wanted to edit or delete what another wrote; ignored.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n tries, {reason}.</source>
        <comment>%n try, {reason}.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n unread</source>
        <comment>%n unread</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n waiting</source>
        <comment>%n waiting</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n waiting to send</source>
        <comment>%n waiting to send</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n years</source>
        <comment>%n year</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>/ip4, /ip6, /dns4 or /dns6 with the host, then /tcp/ with the port, /ws or /wss for WebSocket, and at the end /p2p/ with the peer id.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>; what wait behind is shown below after a minute</source>
        <comment>; what waits behind is shown below after a minute</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>A clock can be set by a hundred years at most.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A content topic looks like /my-app/1/room/proto; &quot;{given}&quot; does not.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A file needs a name.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A key pair is made on this device. Nobody else has the secret half, and there is no backup yet: who loses this device loses this identity.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A member</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A member sent it again, because it was missing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A message can mention {limit} people.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A message needs some text.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A message that is here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A message that is not here yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A message that needs a newer version</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>A name has at most %n characters; the rest was left out.</source>
        <comment>A name has at most %n character; the rest was left out.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>A page up, down</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A part of it cannot be read any more on this device. Send it again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A part of it cannot be read any more on this device. Try again to get it anew.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A person&apos;s contact link. A click shows whose it is.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A reaction is one emoji.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A shard is a number from 0 to {limit}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A thread with three messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About the conversation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About the conversation, and close it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About the message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About this channel…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About this group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About this person</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Accept</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Accept their request first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Accept {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Accept {name} to write to them</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Activities</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Add</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Add a Store by its address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Add a person</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Add a person, start a group, or join one with an invitation. Everyone in it sees the same messages in the same order.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Add…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All of the file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All that can be done with it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All there is</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>An invitation to a group. A click shows what it says.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Animals and nature</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Another %n lines are wrong.</source>
        <comment>Another %n line is wrong.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Another process keeps the database locked.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Answers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Answers in {number} ms</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Any time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Anybody</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Anyone can take any name. Compare it by another way, then mark it as verified.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Anyone can take any name: compare the fingerprint if you can. They learn only that their request arrived.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Anyone with this link can read this group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Anywhere</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Appearance</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Archive</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Archived: {number}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Arrived late, and was put where it belongs.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Arrived late.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As Causerie</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As js-waku</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As many files are kept here as there may be; delete some first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As others do</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As the channel is called</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As the desktop</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Asked %n times</source>
        <comment>Asked %n time</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Asked once</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Asked twice</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Asking Stores for what is missing, {number} new</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Asking Stores for what is missing…</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Asking contacts %n addresses of theirs.</source>
        <comment>Asking contacts %n address of theirs.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Asking for %n messages</source>
        <comment>Asking for %n message</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>At most {most} files go out at once.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back from the archive</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back to the conversations</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back to the group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back to the names</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Between …</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Block</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Block {name}?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Blocked</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Block…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Bold, italic, strike</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Both messages are signed, and only one of them fits into the order in which they say that they spoke. Not everybody was sent the same; both are kept here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>By content topic</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>By the others&apos; clock</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Calendar</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Came</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Came over: {conversations}, {messages}, {people}, {files}, {others}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel (Esc)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Catching up, {number} new</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Catching up…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Causerie could not start</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Causerie fetches no picture from the web. Copy it and paste it here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Causerie opens web addresses (https and http) and mail addresses only.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Causerie sees other windows only if System Settings, Privacy, Screen Recording allows it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Causerie {version}</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Causerie: %n unread</source>
        <comment>Causerie: %n unread</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Changing…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Channel id</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the clock</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a conversation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a conversation first</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a picture</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a picture of the code, or drop one here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a picture…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Click to ask for it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Clipboard</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Clock</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Clock {off} ahead</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Clock {off} behind</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close the panel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close the search</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close this notice</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cluster</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cluster and shard</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cluster and shard are numbers.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cluster {cluster}, shard by content topic</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cluster {cluster}, shard {shard}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Code copied</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Code of the invitation to {name}, to be scanned</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Code of the safety number with {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Code of your contact link, to be scanned</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Command: {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compare it with {name} when you meet or talk. If it is the same on both devices, nobody is in between.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compare with {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compare…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connected peers that keep messages. They are asked while no Store of yours is on.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connected peers that keep messages. They are not asked, because a Store of yours is on.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connecting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Contact link</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Contact link of {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Content that is no text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Content that is no text.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Content topic</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Continue</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Conversation above</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Conversation above, below</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Conversation below</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copied</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy code</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy link</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the proof</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy what can be read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy, select everything</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Could not read the messages: {reason}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Could not {purpose}: {why}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Create group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ctrl /</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ctrl J</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ctrl N</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ctrl P</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ctrl Shift F</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dark</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dark skin tone</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Days</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Decline</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Declined</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete for everybody</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete for you?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete here…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete this message?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Deleted message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delivered.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Details</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Devices on one network find each other. Others there can see that this one is here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Direct</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Direct, and through service nodes while nobody else can be reached.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Directly, when it was sent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Discard</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Discard this message?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Discard…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Do not disturb</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Do not send {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Do not show the messages of {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Done</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Draft: </source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Drop here to send to {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Earlier message that was found</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Earlier messages could not be fetched. {why}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Earlier messages missing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Earlier versions…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Edit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Edit message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Edit what you sent last, if nothing is written</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Edited</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Else what can be read is copied into a new profile; this one stays as it is.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Emoji</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Emoji (Ctrl+E)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Emoji that you use are kept here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Emoji; or write :name:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Every other member holds it; to one person: delivered.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Everybody who received an earlier version can still read it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Everyone in a group ends up with the same messages in the same order, and every message shows who holds it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Everything goes through service nodes, as the public Waku network needs it. They learn which topics you follow, and not what is written.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Everything goes through the proxy, and nothing is said on the local network.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Everything is read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Faces and feelings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Failed the last time; it is asked again. {reason}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fetch</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fetch again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fetch earlier messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fetch history</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fetch history from Stores</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fetch pictures below {size} MB by themselves</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fetched {back_to}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fetching earlier messages…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fetching history, {back_to}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>File {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>File {name}, {words}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Find each other</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fingerprint of its admin, compare it if you can</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fingerprint of {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fingerprint of {name}: {fingerprint}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Flags</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Food and drink</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For 1 hour</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For 8 hours</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For everybody: the others are asked to hide it, in ten seconds, so that you can still undo it. Whoever has it now, or kept a copy, can keep it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For example Tide Gauge</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For example general</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For its turn, or for a Store that can be reached.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Forward</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Forward to</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Forwarded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Forward…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Found</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>From</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>From a Store</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>From the next start on it is written down when each message was sent, arrived, was missing and was acknowledged: for testers who compare their records. The files lie in the profile and are not encrypted. They hold no text, no names and no keys, but message ids, times, and a pseudonym for every person and conversation. Nothing is sent anywhere.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>From this day</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>From {names}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>From {name}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Full address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>GIF</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Give it a name. You can invite people as soon as it is there.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Give them mine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go by the others</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go by this device&apos;s clock again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go on</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go to date</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go to date…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Group menu</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Group: {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Groups</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Groups and people appear here, newest first. Nothing is waiting for you.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Groups in common</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Held by {number} of {all} others, maybe {maybe} more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Held by {number} of {all} others.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Held by {number} of {all}, maybe {maybe} more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Held by {number} of {all}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Held: its time has not come.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Held: their time has not come</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Held: {clocks}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Hide their messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>High contrast</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Histories and retries</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>History</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>History could not be fetched to the end</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>History fetched</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>History fetched: nothing new</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>History fetched: {number} new messages</source>
        <comment>History fetched: {number} new message</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>How it works</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How this device meets others.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If yours is wrong, set it right.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In the settings file &quot;{key}&quot; must be a section ({place}).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Invitation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Invitation from {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Invitation link</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Invitation link…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Invitation to a group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Invitation to {group}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Invitation to {group}. {inviter}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Invite people</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Invite to {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It arrived after messages that follow it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It can stay in the tray and tell you of messages. If it ends, nothing arrives on this device until you start it again. You can change this in the menu.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It comes again by itself</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It goes out as a message of yours that says it is forwarded: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It has not reached anybody yet. It goes from your view and is not sent by itself any more, but what you write after it may still lead others to it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is not encrypted (http): others on the way can read and change what it shows.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is not known whether this was saved: the work was interrupted.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is not what its message says, so it was thrown away. Only its sender can be to blame.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is removed from this device only. The others keep it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is the same</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>It is with {names} and %n more.</source>
        <comment>It is with {names} and %n more.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>It is with {names}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It leaves Causerie and opens in another program, which tells that site your network address.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It needs a service node: nobody who could be asked is connected. Add a node that keeps files under &quot;Network&quot; in the menu, the same one as its sender.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It takes its place at {moment}, or when the clocks agree.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It takes its place on {moment}, or when the clocks agree.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It was given up. It is safe on this device and can be sent again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its messages are removed from this device. Nobody is told, and you can join again by its names.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Join</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Join a channel by its names, or make one. Other Waku programs can be in it, too.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Join with an invitation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Join {group}</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Joining contacts %n addresses</source>
        <comment>Joining contacts %n address</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Joining…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Join…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep Causerie running?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep in the list</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep running</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep running in the tray when closed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep {address} in the list</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Key: {key}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keys</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Label in your list</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Larger</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Larger, smaller, normal text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last 30 days</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last 365 days</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last 7 days</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last seen {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last year</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Late</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Later</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Later message that was found</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Later messages refer to them.</source>
        <comment>Later messages refer to it.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Leave channel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Leave channel…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Leave group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Leave group…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Leave {name}?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Let it be scanned, or send the link over a channel you trust.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Light</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Light skin tone</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Limited</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Local network</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Look again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Looking for a QR code…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Mark as read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Mark as unread</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Maybe held by {maybe} of {all}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Maybe held under %n names; nobody here is proved.</source>
        <comment>Maybe held under %n name; nobody here is proved.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Medium skin tone</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Medium-dark skin tone</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Medium-light skin tone</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Members</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Members of {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Members…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Mention somebody</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Menu</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Menu of this channel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Menu of this person</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Message above, below</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Message in {conversation} from {sender}, {time}: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Message info</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Message info…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Message to {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Message {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Message, not available: {reason}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Messages are kept encrypted on this device.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Messages are sealed for the members of this group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Messages are sealed for the two of you</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Messages as</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Messages carried over</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Messages carry numbers, and these never came.</source>
        <comment>Messages carry numbers, and this one never came.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Messages that arrived refer to them, but this device never received them. Noticed on {moment}.</source>
        <comment>Messages that arrived refer to it, but this device never received it. Noticed on {moment}.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Messages: {said}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Missing: others have it, this device does not. It is being asked for.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Missing: where it belongs</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Month after</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Month before</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>More</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>More choices</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move down</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move up</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Mute</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Name</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Name of the group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Name on this device</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Network</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New line</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New message from {sender}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New reaction from {sender}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New since {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next area</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No Store answered.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No address in it is contacted before you agree.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No conversation yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No emoji is called so.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>No member and no Store has them any more</source>
        <comment>No member and no Store has it any more</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>No member and no Store that answered has them; {stores} did not answer</source>
        <comment>No member and no Store that answered has it; {stores} did not answer</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>No member has them any more</source>
        <comment>No member has it any more</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>No member has them any more; {stores} did not answer</source>
        <comment>No member has it any more; {stores} did not answer</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>No message was found.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No messages yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No picture</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No program here opens it. Save it instead.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No program opens folders here: {path}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No reply, no edit after all</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No service node keeps it: others get it only while you are connected. Add a node that keeps files under &quot;Network&quot; in the menu.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No sign of them so far</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No skin tone</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nobody and no group is called “{name}”.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nobody any more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nobody else is in this group yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nobody says that this device&apos;s clock is wrong.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nobody who was asked has what is missing.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Normal</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not a picture</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not all of this file is here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not asked yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not connected yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not delivered: </source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not delivered: {why}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not encrypted: anybody can read and write</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not encrypted: anybody can read and write, under any name.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not saved: {why} Trying again by itself.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not seen yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not sent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not sent. The reason stands below, with a way to send it again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not sent: </source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not sent: {why}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not shown here: it waits, or was deleted.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not verified any more</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not yet: {names} and {number} more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not yet: {names}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing found</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is said on the local network. Others can still be met by address.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing missing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing more was found, {back_to}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing that could be found was left out.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing was changed. If you have a backup of this folder, put it back.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing was shared so far.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Notices</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Notifications</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Objects</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Of an unknown sender</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Of somebody unknown here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Off</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Offline</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Older messages are still being indexed: {share} % can be found.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>On a message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>One of the two messages is not kept here any more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>One of you gives the other a contact link. Both must agree before you can write.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Online</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only its author can change a message.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only on this device so far.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only you are here so far</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only you see this name. Leave it empty to see the name they gave themselves.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only {name} says so, whom you have known for less than a day.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only {name} was heard, and says so.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open Causerie</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open Settings, Time &amp; language, Date &amp; time, and turn on “Set time automatically”.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open System Settings, General, Date &amp; Time, and turn on “Set time and date automatically”.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open anyway</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open channel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open channel, not encrypted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open the folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open the new profile</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open the settings file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open this address?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open this file?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open {group}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Or read their QR code from</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Original size ({size})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Other emoji…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Paste a contact link: it starts with {prefix}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Paste an invitation link: it starts with {prefix}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Paste the link they gave you, or a picture of its code</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Paste the link you were given</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Paused · {size}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>People</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>People and body</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>People to mention</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>People you talk to see this name and picture.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>People, groups, messages, commands</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Person</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Person: {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Photo</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Photo from {name}, {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pick one on the left, or start another.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Picture after</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Picture before</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Picture {name}, {words}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pictures (*.png *.jpg *.jpeg)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pictures and files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Picture…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pin to the top</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Place in the order: {number}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Place, camera and other details are removed in any case.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Plain text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quit Causerie?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quit while messages wait?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>React</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Read both to each other when you meet or talk. If {name} sees the same two, the messages under this name are theirs.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Read the code that is on the screen now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Read what was copied: a picture of the code, or a link</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Received</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Record</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Record deliveries</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Record deliveries?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Records can be compared if all who made them have this key. Whoever has it can find out whose the pseudonyms are: give it to your test group only, for “key” under [delivery] in their settings file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Refused or set aside here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove picture</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove {name}?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reply</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reply to yourself</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reply to {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Request withdrawn</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Resend</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Role</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>SOCKS5 proxy for all connections</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Safety number with {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Safety number: {digits}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Safety number…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save a report</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save a report…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save as</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save as…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Saved in {path}. It holds no messages.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Saved on this device, waiting for the network.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Saved on this device. It waits for the network and survives a restart.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Screen</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search emoji</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search emoji by name</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search everything</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search messages for “{text}”</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search people and groups</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search people and groups by name</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search people, groups, messages and commands</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search the list</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search the list of conversations</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search this conversation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send (Enter)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send a picture or a file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send somebody an invitation, or let them scan its code.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sent and received since the start</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sent with a newer version of Causerie. Update to see it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sent {sent}, received {received}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sent. A relay or a service took it; nobody is known to hold it yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sent. Nobody is known to hold it yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sent. Their device has not said yet that it has it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Service nodes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Service nodes, one address on each line</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set label</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shard</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show all</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show fewer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show more</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show text in notifications</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show the messages of {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show their messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Signed {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Site: {host}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Size</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Skin tone</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Skin tone: {tone}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Smaller</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Some members hold it, or may hold it. The number counts who surely does.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Somebody who left</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Something is missing in this contact link. Ask for a new one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Something is missing in this invitation. Ask for a new one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Something went wrong that should not. Please send a report to its makers.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start a conversation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start with the session</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Status</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stay unseen</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Step {number} of {steps}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop and quit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stopped fetching.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Stopped. {number} new messages stay here</source>
        <comment>Stopped. {number} new message stays here</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Store {number} of {all}: {words}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Store {version}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Store {version}, also {others}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Store {words}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stores</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stores keep sealed messages for those who are away. They cannot read them, and what they answer is checked here. Those that are on are asked in this order.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stores…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Suggestions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Switch off</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Switch off (on {until})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Symbols</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>TLS failed ({detail})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>TOY-CHAT</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Take out of the archive</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tell others when I am typing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tell people when I am online</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Test</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Test all</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Test {address}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Test: cannot be used. {reason}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Test: works. {found}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Testing…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Text size</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>That is far more than a message can hold ({most} kB). Nothing was pasted; it is still in the clipboard.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>That is very much: only its first words were searched for.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The beads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The conversation of that notification is not here any more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The damaged profile stays as it is. You may stop it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The database cannot be decrypted: either its key is another one, or the file was damaged.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The database file cannot be opened.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The database is damaged.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The database may only be read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The default is used instead.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The disk is full; nothing was saved.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The disk is too full to carry your messages over to this version: for a while that takes up to {detail} MB more. Make room and start again; nothing was changed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The disk is too slow: too much waits for it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The disk reported an error.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file cannot be read: {detail}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file cannot be read: {reason}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file cannot be written: {detail}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file is empty.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file is larger than 10 MB. Choose a smaller picture.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The key of this profile cannot be read, so its messages cannot be opened. Unlock the system&apos;s keyring, or put the missing file back, and try again. Nothing was changed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The key of your records</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The key to your messages lies here: {where}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The key to your messages lies in a file beside them: keep the profile&apos;s folder to yourself.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The key to your messages lies in the system keyring.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The last messages: {said}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The line may be there to protect you, so it is not left out. Mend it and try again. Default settings do without it; your file is kept beside the new one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local network and the proxy hold from the next start.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>The members of the group and your Stores are asked again and again until they arrive</source>
        <comment>The members of the group and your Stores are asked again and again until it arrives</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>The message will be deleted for everybody in ten seconds.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>The newest %n messages</source>
        <comment>The newest message</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>The others</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The others are told if they can be reached. Its messages are removed from this device and you need a new invitation to come back.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The picture cannot be made small enough.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The picture has more than 40 million pixels. Choose a smaller one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The picture has more than 40 million pixels. Cut out the code and try again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The picture is damaged.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The picture is larger than 10 MB. Choose a smaller one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The picture is larger than 20 MB. Cut out the code and try again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The profile &quot;{detail}&quot; is in use by another program, whose window does not answer. Close that program first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The profile is being closed; what was asked last may not have been saved.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The profile&apos;s database cannot be used.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The profile&apos;s folder cannot be used ({detail}).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The request was declined.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The setting &quot;{key}&quot; has an impossible value ({place}).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The setting &quot;{key}&quot; is a secret, and others on this machine can read the settings file ({place}).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The settings cannot be used</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The settings file cannot be read ({place}).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The settings file is not TOML ({place}).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The settings file is not UTF-8 text ({place}).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The settings file is too large ({place}).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The time of this device was set, so Causerie goes by it again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The time that you go by is {duration} ahead of the others&apos;.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The time that you go by is {duration} behind the others&apos;.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Their contact link</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Their fingerprint</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Their fingerprint, compare it if you can</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Their fingerprint: {fingerprint}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Their link or code</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>There are %n QR codes here, and none is a Causerie link.</source>
        <comment>There is %n QR code here, and it is no Causerie link.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>There are %n codes with links here. Show only one of them.</source>
        <comment>There is %n code with a link here. Show only one of them.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>There can be {limit} Stores.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is neither a picture nor a link to paste.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no QR code in this picture that can be read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no QR code on the screen that can be read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no Store in the list yet. Without one, what was said while you were away comes from the other members once they are there. Your group&apos;s founder or whoever runs a node can give you an address.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no request to accept any more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no request to withdraw any more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no setting &quot;{key}&quot; ({place}).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no such Store in the list.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no such conversation any more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no such file any more, or it is not a file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is not enough memory for this picture.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is nothing to decline any more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>These are several files. Take one picture at a time.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>These keys</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>They and all messages between you go from this device, and they are not told. They keep what you wrote, and may ask to talk to you again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>They are asked again by and by.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>They are asked whether they want to talk to you.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>They are in the profile {name}; the damaged one stays as it is.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>They are in {groups} and %n more of your groups.</source>
        <comment>They are in {groups} and %n more of your groups.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>They are in {groups}, as you are.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>They are not told. Nothing of theirs is taken in or answered until you unblock them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>They are not told. Nothing of theirs is taken in or answered.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>They are the same</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>They are told. You can ask again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>They asked you already: this accepts.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>They come again by themselves</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>They have not answered your request yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>They never arrived, and nobody waits for them any more</source>
        <comment>It never arrived, and nobody waits for it any more</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>They take their places from {moment} on, or when the clocks agree.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>They were told. You can still ask them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This Store is in the list already.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This address is not opened</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This cannot be done now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This cannot be stored; nothing was saved.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This cannot be used.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This channel id is too long: at most {limit} bytes are allowed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This channel is on cluster {cluster} and this device is not: nothing is sent or received.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This code is not a Causerie link. It says: {said}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This contact link cannot be read. Ask for a new one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This contact link expired on {date}. Ask for a new one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This contact link has an unusable address in it. Ask for a new one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This contact link has an unusable name in it. Ask for a new one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This contact link has something in it that does not belong there. Ask for a new one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This contact link is not signed by the person it names. Do not trust it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This contact link names a key that cannot be genuine. Do not trust it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This contact link was made by a newer version of Causerie. Update first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This contradicts what is stored already; nothing was saved.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This conversation could not be loaded.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This conversation is not in the profile any more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This desktop (Wayland) lets no program read the screen. Make a screenshot and paste it here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This desktop does not show Causerie what is on it. Make a screenshot and paste it here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This desktop has no tray, so closing the window ends the program. Nothing arrives on this device until you start it again; then it fetches what it missed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This device</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This device is offline. It goes on by itself once somebody is connected.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This device is on cluster {limit}, so it cannot reach a channel on cluster {given}. Choose that network in the settings, or use another profile for it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This device passes messages on, and others reach it directly.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This device&apos;s clock is {duration} ahead of the others&apos;.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This device&apos;s clock is {duration} behind the others&apos;.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file has {given} bytes; at most {limit} can be sent at once.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file is empty.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file is too large to be shown here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This happens once and may take minutes. You may stop it: nothing is lost, and the next start begins anew.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This invitation cannot be read. Ask for a new one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This invitation has an unusable address in it. Ask for a new one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This invitation has an unusable name in it. Ask for a new one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This invitation has an unusable service node in it. Ask for a new one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This invitation has something in it that does not belong there. Ask for a new one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This invitation names an admin key that cannot be genuine. Do not trust it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This invitation was made by a newer version of Causerie. Update first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is a contact link, not an invitation to a group. Add the person with it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is a person&apos;s contact link. Choose “Add a person” for it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is all that the Stores have.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is an invitation to a group, not a contact link. Join the group with it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is an invitation to a group. Choose “Join with an invitation” for it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is far too long for a contact link.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is far too long for an invitation.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is far too long to be a contact link.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is far too long to be an invitation link.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is neither a PNG nor a JPEG picture.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not a Causerie contact link: those start with {prefix}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not a Causerie invitation link: those start with {prefix}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is your own contact link. Send it to somebody, or paste the link of another.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This link is cut off. Copy the whole link.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This link is too long: a contact link has at most {limit} characters.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This link is too long: an invitation link has at most {limit} characters.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This link was cut off or changed on its way. Copy the whole link.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This message has no file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This message has {given} bytes; at most {limit} can be sent at once.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This message is not here any more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This message was deleted.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This name cannot be used: nothing is left of the name.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This name cannot be used: the name is longer than {limit} characters.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This picture cannot be used: the picture is larger than {limit} bytes.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This picture cannot be used: the picture is neither PNG nor JPEG.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This profile was used in two places at once.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This profile was written by a newer version of Causerie. Install that version; nothing was changed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This profile was written by a test version whose format is not used any more. Nothing was changed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This system has no font for emoji, so they are shown by name.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>To service nodes: {done}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>To the first message, to the newest</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>To the message it answers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>To the newest message</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>To the newest message, %n unread</source>
        <comment>To the newest message, %n unread</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>To the next area</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Today</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Travel and places</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Try again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Turn on automatic date and time in the settings of your desktop, or run “timedatectl set-ntp true” in a terminal.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Two devices, or a copy of this profile, counted their messages alike and said different things. Both messages are kept. Use a profile in one place only.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Two or more are best: if one fails, nothing is lost.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Two short steps. Your name stays on this device until you join a conversation.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unblock</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Undo</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unknown: it came before this was noted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unmute</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unmute (muted {until})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unmute ({muted})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unpin</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unread</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Until switched off</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Until switched on</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unusually much is sent here. Messages beyond a day&apos;s limit are kept aside and not shown.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Up to this day</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use an invitation or a contact link you were given, or make a group.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use any free port</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use default settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use {address}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Used last</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Versions of this message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting for an answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting for earlier messages.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting for network</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting for {name} to accept</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting to fetch earlier messages. {why}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting to fetch earlier messages…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting to fetch history</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting · {size}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Wants to talk to you</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Welcome to Causerie</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What came cannot be used ({reason}).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What can be done with it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What can be done with this Store</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What can be done with {address}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What can be read is copied</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What could be read was copied</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What its button does</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What should people call you?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What the search knew of your messages was damaged. It is made again; no message is lost.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>What turns up takes its place here.</source>
        <comment>If it ever turns up, it takes its place here.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>What was found</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What you write and acknowledge shows it all the same. Without it, what others sent while you were away may take longer to come.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>While writing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Who holds it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Who holds it…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Who reacted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Who reacted…</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Who wrote them sends them again and again until they arrive</source>
        <comment>Who wrote it sends it again and again until it arrives</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Whoever has it can ask to talk to you; you decide. It expires on {expires}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whoever has them learns that you are there. Without it, a click fetches each.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whose link</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>With a file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>With a link</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>With default settings it starts at once; your file is kept beside the new one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Withdraw request</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Write to them</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Written by</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Written on this device</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Wrote {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You accepted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You and {name} do not talk</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You are in a channel with this content topic on another shard. Leave it first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You are in no group yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You are in this group already.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You are now called {new}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You are there</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You asked them already and they have not answered.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You asked to talk</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You blocked them. Unblock them first, in the conversation.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You blocked this person.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You blocked {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You blocked {name}. Unblock them first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You can ask them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You can write once {name} accepts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You compared it: nobody is in between.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You declined</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You declined {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You deleted a message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You deleted this message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You edited: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You go by the others&apos; clock, {off} ahead of this device&apos;s, until that is set.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You go by the others&apos; clock, {off} behind this device&apos;s, until that is set.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You joined</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You left</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You may ask again. They hear of it a day after they declined, not before.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>You muted {name} and %n others.</source>
        <comment>You muted {name} and %n other.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>You muted {name} and {other}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You muted {name}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You reacted {emoji} to: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You share no group with them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You share no group.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You started this group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You talk to nobody one to one yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You talk to them already.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You two did not come together before. This asks again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You withdrew the request</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You withdrew your request to {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You: </source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You: {name}, {word}. Your profile</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your contact link</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your earlier profile was written by a test version whose format is not used any more. It is kept in {file}; a new one begins here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your fingerprint</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your fingerprint, to compare</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your link could not be made: {error}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your messages are carried over to this version</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your messages may be refused or held back.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your messages may be refused, and theirs held back.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your name there</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your name travels with your messages.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your picture</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your profile</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your reply was not sent, because the conversation is not here any more: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your request did not reach {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your request is on their device. You see here when they answer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your request reaches them as soon as they can be reached.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>a list of at most {most} multiaddrs, such as {example}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>a list of at most {most} multiaddrs, such as {example}, each with its /p2p/ part</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>a web server answers {detail} there and opens no WebSocket</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>a whole number from {least} to {most}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>accept the request</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>add a person</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>add the Store</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>add the person</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;/{part}&quot; is unsupported after the host, where /tcp/PORT is needed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;/{part}&quot; is unsupported: after the port there may be one of /ws, /wss and /tls/ws, and then /p2p/PEER</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;/{part}&quot; is unsupported: nothing may follow the peer id</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;{part}&quot; is no host name</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;{part}&quot; is no peer id</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;{part}&quot; is no port (0 to {allowed})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;{part}&quot; is no {allowed} address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;{part}&quot; is not one of {allowed}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;{part}&quot;: an address with a zone is unsupported</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: /p2p/ and the peer id are missing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: /tls is supported only in /tls/ws, which is the same as /wss</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: /{part} needs a peer id</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: after the host /tcp/PORT is needed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: it has too many parts ({allowed} at most)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: it must not end in &quot;/&quot;</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: it must start with &quot;/&quot;, as in {allowed}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>admin</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>all there is</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>and %n service nodes of the group</source>
        <comment>and %n service node of the group</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>and {number} more</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>and {number} more here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>answers {name}: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>answers {service} requests wrongly ({detail})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>arrived late</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>ask again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>ask for the lost messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>ask for the missing messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>ask for the quoted message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>asked again at {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>asking now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>back to {date}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>block the person</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cancel the file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cannot be reached ({why})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cannot be used ({why})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>change the network</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>check the clock</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>close the window</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cluster not said</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cluster {number}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>code: {text}, end of code</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>compare the fingerprints</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>connected through {number} service nodes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>connected to one peer: everything depends on it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>connected to {number} peers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>connected to {number} peers, none passes messages on yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>create the group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>decline the request</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>delete the message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>delete the message for everybody</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>does not answer {service} requests</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>edit the message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>edited</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>edited {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>empty, or a SOCKS5 proxy by its IP address, such as &quot;{example}&quot;</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>empty, or the 43 characters that another member of the test group was shown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>error: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>everything depends on one service node</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>fetch earlier messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>fetch history</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>fetch the file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>forward the message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>given up {moment}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>go to a date</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>has closed the connection</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>has your message of {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>has your newest message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>held as a whole by them</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>held as a whole by {number} of {others}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>holds it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>id {id}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>info: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>is slow to answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it answers with an unknown status</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it answers wrongly: {detail}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it breaks the protocol ({detail})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it cannot be reached</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it cannot look for single messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>it did not have %n messages that others had</source>
        <comment>it did not have %n message that others had</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>it does not answer in time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it forgets where its pages were</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it gave a message that does not bear its hash</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it gave messages of another time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it gave messages that were not asked for</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it gave messages without content</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it has more pages than are read at once</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it has nothing of your conversations</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it is in cluster {theirs}, this device in cluster {ours}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it is not connected</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it keeps no messages for others</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it offers no {services}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it refuses to answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it refuses: {detail}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it says that it is asked too often</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it says that it is out of service</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it speaks none of the protocols that are needed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its address cannot be used</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its answer cannot be read ({reason})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its answer is larger than allowed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its certificate is not valid ({detail})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its clock agrees with the messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its clock is not told</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its clock is {duration} ahead of the messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its clock is {duration} behind the messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its filter says so, which can err</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its name is too long for a proxy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its oldest message of yours is from {date}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its pages begin again and again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its pages bring nothing new and never end</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its pages cannot be followed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its pages do not go on</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>join a group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>join the group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>label the channel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>last asked {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>leave the channel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>leave the group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>left</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>list what was shared</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>look for signs of two stories</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>look who sends unusually much</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>make a group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>make an invitation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>make your identity</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>marked as unread</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>maybe</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>mentions you</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>messages can be received but not sent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>messages can be sent but not received</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>missing {since}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>move the Store</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>mute the conversation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>mute the member</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>muted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>muted {until}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>named it in a later message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>new request</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>next try in {minutes} min</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>next try in {seconds} s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no Store answered to the end; of the one that came furthest: {why}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no answer in {seconds:g} s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no service node answers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no service node is set, and without relaying one is needed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no service node serves this device</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no sign</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no sign yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>nobody is connected yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>nobody took it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>none; Tor&apos;s is socks5://127.0.0.1:9050</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not sent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not sent yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not started</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>nothing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>number {first}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>numbers {first} to {last}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>offers no {services}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>online</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>only here so far</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>open</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>open a channel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>open channel, not encrypted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>open the address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>open the channel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>open the file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>pause the file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>picture</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>proxy &quot;{shown}&quot;: &quot;{part}&quot; is no IP address; a name would have to be looked up beside the proxy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>proxy &quot;{shown}&quot;: &quot;{part}&quot; is no kind of proxy known here, only socks5</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>proxy &quot;{shown}&quot;: &quot;{part}&quot; is no port (1 to {allowed})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>proxy &quot;{shown}&quot;: it is longer than {allowed} characters</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>proxy &quot;{shown}&quot;: it must look like {allowed} or socks5://USER:PASSWORD@127.0.0.1:9050 (in a name or password write @ as %40, : as %3A and / as %2F)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>proxy &quot;{shown}&quot;: the port is missing, as in :9050</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>proxy &quot;{shown}&quot;: user and password must both be there, with 1 to {allowed} bytes each</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>quote: {text}, end of quote</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>read the code</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>read the conversation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>read the file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>read the picture</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>refused a message ({detail})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>refuses subscriptions ({detail})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>remember what was read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>remember whom you compared</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>remove the Store</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>remove the person</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>rename the person</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>said before {moment}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>save the draft</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>save the file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>save your profile</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>says so, unproved</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>says {moment}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>search</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>see who has what</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>send the message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>send the message again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>send the reaction</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>send the reply</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>sent it again for somebody</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>set the clock</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show a picture</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show both messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show how it works</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show the Stores</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show the channel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show the conversation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show the earlier versions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show the keys</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show the member&apos;s messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show the members</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show the messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show the network settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show the picture</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show the safety number</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show what is known of the message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show who holds it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show who reacted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>show your profile</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>shows all keys.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>since {day}, {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>since {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>somebody</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>somebody unknown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>stop fetching history</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>switch the Store</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>take the reaction back</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>takes no messages now ({detail})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>tell that you are typing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>test the Store</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>that is this device itself</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the address is longer than {allowed} characters</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>the clocks of {name} and %n others are up to {furthest} ahead</source>
        <comment>the clocks of {name} and %n other are up to {furthest} ahead</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>the clocks of {name} and {other} are up to {furthest} ahead</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the connection took the proxy too long</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the connection was lost</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the host refused the proxy&apos;s connection</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the network failed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the onion service could not be introduced to</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the onion service did not answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the onion service is not known</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the onion service needs a key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the onion service refused the key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the onion service&apos;s description is not valid</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the onion service&apos;s introduction took too long</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the other side closed the connection</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the peer is {found}, expected was {expected}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the proxy answers wrongly</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the proxy cannot be reached: {detail}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the proxy cannot open connections (it knows no CONNECT)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the proxy cannot reach that host</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the proxy cannot reach that network</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the proxy could not connect and does not say why</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the proxy does not allow this connection</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the proxy does not support this kind of address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the proxy hung up</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the proxy refuses this user and password</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the proxy refuses with the unknown number {detail}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the proxy wants a user: set it as socks5://USER:PASSWORD@HOST:PORT</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the proxy wants another user or another way to log in: set it as socks5://USER:PASSWORD@HOST:PORT</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>there can be at most {allowed} addresses</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>there is no Store to ask</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>there is no Store to ask; it is fetched as soon as there is one</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>they could not be reached for 30 days</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>this device cannot listen on {detail}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>this device cannot listen on {detail}: use /ws, and a proxy before it for TLS</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>this device is not connected to the network</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>this is no onion address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>this message cannot be published</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>told us so</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>too many connections are open already</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>true or false</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>unblock the person</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>under {percent} % chance</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>unmute the conversation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>unmute the member</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>until {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>verified</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>waiting for earlier messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>warning: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>what answers there is no SOCKS5 proxy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>withdraw the request</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>without an id</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>yesterday {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>you</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>your clock was {furthest} ahead</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{answers}, but something is wrong. {reason}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{asked}, {next_try}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{chance} it is wrong</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>{complete} of {number} queries answered to the end</source>
        <comment>{complete} of {number} query answered to the end</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>{date}, {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{done}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{done} of {whole}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{duration} left</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{emoji} from {names}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{file}: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{given} days: allowed are 1 to {limit}</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>{group}: %n messages are held, because the clock of {names} is {duration} ahead. They take their place when their time has come, or when the clocks agree.</source>
        <comment>{group}: %n message is held, because the clock of {names} is {duration} ahead. They take their place when their time has come, or when the clocks agree.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>{group}: the index of its messages was damaged or out of date. It was made again; no message is lost.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{group}: {words}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{hours} h {minutes} min</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{members}, {number} left</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{members}: only you</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{members}: only you so far</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{members}: {names}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{messages}, {shown} shown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{message}. What is known of it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{most} or {last}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{names} and others</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{names} and {last}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{names} said so</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>{name} (%n new)</source>
        <comment>{name} (%n new)</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>{name} accepted</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>{name} and %n others</source>
        <comment>{name} and %n other</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>{name} and %n others are typing…</source>
        <comment>{name} and %n other are typing…</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>{name} and {other}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} and {other} are typing…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} and {other} say so</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} asked to talk</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} asks no longer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} declined</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} deleted a message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} deleted this message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} edited: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} is sending unusually much. Messages beyond a day&apos;s limit are kept aside and not shown.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} is typing…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} joined</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} left</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} reacted {emoji} to: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} sent it again, because it was missing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} started this group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} told different people different things.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} wants to talk to you</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} withdrew the request</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} — Causerie</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name}&apos;s clock is {furthest} ahead</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name}&apos;s fingerprint, to compare</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>{name}, %n unread</source>
        <comment>{name}, %n unread</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>{name}, fingerprint {fingerprint}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name}, fingerprint {fingerprint}. {known}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name}, group</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name}, open channel, not encrypted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name}, person</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>{name}, {other} and %n more say so</source>
        <comment>{name}, {other} and %n more say so</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>{name}, {word}. Your profile</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{nodes} asked, and nothing of what is missing is there.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{number} GB</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{number} MB</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{number} TB</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{number} a second</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{number} h</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{number} kB</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{number} left out that others had</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{number} looked at</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>{number} messages, {new} of them first from here</source>
        <comment>{number} message, {new} of them first from here</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>{number} min</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{number} missing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{number} new</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>{number} new messages came.</source>
        <comment>{number} new message came.</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>{number} of {total}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{number} of {total} or more</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{number} s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{old} is now called {new}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{over:.1f} kB too long: a message can hold {most} kB. Shorten it or send it in parts.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{path} cannot be written: {reason}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{peers} and {nodes} were asked, and have nothing of what is missing.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{peers} asked, and nobody has what is missing.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{percent} %</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{percent} % chance</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{percent} % done</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{problem} Allowed: {allowed}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{reason}: {node} {problem}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{row}, pinned</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{said}, {claimed}, held</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{said}, {number} of {heard} who were heard.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{sender} in {conversation}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{service} and no {other}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{size} MB</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{size} bytes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{size} kB</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{size}, not fetched yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{size}/s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{store} did not answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{time}, shown now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{whose}: {time}, {day}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{why} It is safe on this device.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{words} Name one, or nothing can be sent or received.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{words} · calls themselves {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{words}, not sent yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{words}, {number} of {count}</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>{word}, %n peers</source>
        <comment>{word}, %n peer</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>{word}, %n service nodes</source>
        <comment>{word}, %n service node</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>“{name}” can run programs on this computer, and {sender} says what it is: nobody has checked it. Open it only if you expected it from them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“{name}” is too large: a file can have {most}.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
</TS>
