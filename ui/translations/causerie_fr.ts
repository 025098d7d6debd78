<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="fr">
<context>
    <name></name>
    <message>
        <source>&quot;auto&quot; or an IPv4 or IPv6 address in quotes, such as &quot;127.0.0.1&quot;</source>
        <translation>«&#xa0;auto&#xa0;» ou une adresse IPv4 ou IPv6 entre guillemets, comme &quot;127.0.0.1&quot;</translation>
    </message>
    <message numerus="yes">
        <source>%n Stores</source>
        <comment>%n Store</comment>
        <translation>
            <numerusform>%n Store</numerusform>
            <numerusform>%n Stores</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n Stores answer</source>
        <comment>%n Store answers</comment>
        <translation>
            <numerusform>%n Store répond</numerusform>
            <numerusform>%n Stores répondent</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n asking</source>
        <comment>%n asking</comment>
        <translation>
            <numerusform>%n demande</numerusform>
            <numerusform>%n demandes</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n authors told different people different things; both are kept.</source>
        <comment>%n author told different people different things; both are kept.</comment>
        <translation>
            <numerusform>%n auteur a dit des choses différentes à différentes personnes&#x202f;; les deux sont gardées.</numerusform>
            <numerusform>%n auteurs ont dit des choses différentes à différentes personnes&#x202f;; les deux sont gardées.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n bytes</source>
        <comment>%n byte</comment>
        <translation>
            <numerusform>%n octet</numerusform>
            <numerusform>%n octets</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n changes count from the next start on.</source>
        <comment>%n change counts from the next start on.</comment>
        <translation>
            <numerusform>%n changement vaut à partir du prochain démarrage.</numerusform>
            <numerusform>%n changements valent à partir du prochain démarrage.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n claims of what somebody holds that cannot be true; refused.</source>
        <comment>%n claim of what somebody holds that cannot be true; refused.</comment>
        <translation>
            <numerusform>%n affirmation impossible sur ce que quelqu’un détient&#x202f;; refusée.</numerusform>
            <numerusform>%n affirmations impossibles sur ce que quelqu’un détient&#x202f;; refusées.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n connections closed to make room: of those that misbehaved, or of the address that had most.</source>
        <comment>%n connection closed to make room: of those that misbehaved, or of the address that had most.</comment>
        <translation>
            <numerusform>%n connexion fermée pour faire de la place&#xa0;: de celles qui se conduisaient mal, ou de l’adresse qui en avait le plus.</numerusform>
            <numerusform>%n connexions fermées pour faire de la place&#xa0;: de celles qui se conduisaient mal, ou de l’adresse qui en avait le plus.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n connections for which there was no room; refused.</source>
        <comment>%n connection for which there was no room; refused.</comment>
        <translation>
            <numerusform>%n connexion pour laquelle il n’y avait pas de place&#x202f;; refusée.</numerusform>
            <numerusform>%n connexions pour lesquelles il n’y avait pas de place&#x202f;; refusées.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n connections from an address that has begun too many at once; refused.</source>
        <comment>%n connection from an address that has begun too many at once; refused.</comment>
        <translation>
            <numerusform>%n connexion d’une adresse qui en a commencé trop à la fois&#x202f;; refusée.</numerusform>
            <numerusform>%n connexions d’une adresse qui en a commencé trop à la fois&#x202f;; refusées.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n connections from an address that has its share already; refused.</source>
        <comment>%n connection from an address that has its share already; refused.</comment>
        <translation>
            <numerusform>%n connexion d’une adresse qui a déjà sa part&#x202f;; refusée.</numerusform>
            <numerusform>%n connexions d’une adresse qui a déjà sa part&#x202f;; refusées.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n connections refused because too many were being made at once.</source>
        <comment>%n connection refused because too many were being made at once.</comment>
        <translation>
            <numerusform>%n connexion refusée parce que trop étaient en cours d’établissement.</numerusform>
            <numerusform>%n connexions refusées parce que trop étaient en cours d’établissement.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n conversations</source>
        <comment>%n conversation</comment>
        <translation>
            <numerusform>%n conversation</numerusform>
            <numerusform>%n conversations</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n days</source>
        <comment>%n day</comment>
        <translation>
            <numerusform>%n jour</numerusform>
            <numerusform>%n jours</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n do not</source>
        <comment>%n does not</comment>
        <translation>
            <numerusform>%n non</numerusform>
            <numerusform>%n non</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n earlier messages arrived</source>
        <comment>%n earlier message arrived</comment>
        <translation>
            <numerusform>%n message antérieur est arrivé</numerusform>
            <numerusform>%n messages antérieurs sont arrivés</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n entries of its answer could not be used</source>
        <comment>%n entry of its answer could not be used</comment>
        <translation>
            <numerusform>%n entrée de sa réponse n’a pas pu être utilisée</numerusform>
            <numerusform>%n entrées de sa réponse n’ont pas pu être utilisées</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n files</source>
        <comment>%n file</comment>
        <translation>
            <numerusform>%n fichier</numerusform>
            <numerusform>%n fichiers</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n files are not on this device</source>
        <comment>%n file is not on this device</comment>
        <translation>
            <numerusform>%n fichier n’est pas sur cet appareil</numerusform>
            <numerusform>%n fichiers ne sont pas sur cet appareil</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n files go out with the message: {names}</source>
        <comment>Goes out with the message: {names}</comment>
        <translation>
            <numerusform>Part avec le message&#xa0;: {names}</numerusform>
            <numerusform>%n fichiers partent avec le message&#xa0;: {names}</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n files stay: no connected member has them just now.</source>
        <comment>%n file stays: no connected member has it just now.</comment>
        <translation>
            <numerusform>%n fichier reste&#xa0;: aucun membre connecté ne l’a en ce moment.</numerusform>
            <numerusform>%n fichiers restent&#xa0;: aucun membre connecté ne les a en ce moment.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n given up</source>
        <comment>%n given up</comment>
        <translation>
            <numerusform>%n abandonné</numerusform>
            <numerusform>%n abandonnés</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n groups lost their key: what was said can be read, but nothing comes or goes. Leave them, and join them by a new invitation.</source>
        <comment>%n group lost its key: what was said can be read, but nothing comes or goes. Leave it, and join it by a new invitation.</comment>
        <translation>
            <numerusform>%n groupe a perdu sa clé&#xa0;: ce qui a été dit reste lisible, mais plus rien n’arrive ni ne part. Quittez-le et rejoignez-le par une nouvelle invitation.</numerusform>
            <numerusform>%n groupes ont perdu leur clé&#xa0;: ce qui a été dit reste lisible, mais plus rien n’arrive ni ne part. Quittez-les et rejoignez-les par une nouvelle invitation.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n handshakes that went on for too long and made room for another.</source>
        <comment>%n handshake that went on for too long and made room for another.</comment>
        <translation>
            <numerusform>%n poignée de main qui durait trop et a laissé la place à une autre.</numerusform>
            <numerusform>%n poignées de main qui duraient trop et ont laissé la place à une autre.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n invitations are out.</source>
        <comment>%n invitation is out.</comment>
        <translation>
            <numerusform>%n invitation est en cours.</numerusform>
            <numerusform>%n invitations sont en cours.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n larger files are your own and stay; {alone} of them nobody else is known to have.</source>
        <comment>%n larger file is your own and stays; {alone} of it nobody else is known to have.</comment>
        <translation>
            <numerusform>%n plus grand fichier est à vous et reste&#x202f;; de celui-ci, {alone} n’est connu chez personne d’autre.</numerusform>
            <numerusform>%n plus grands fichiers sont à vous et restent&#x202f;; pour {alone} d’entre eux, personne d’autre ne dit les avoir.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n maybe hold it</source>
        <comment>%n maybe holds it</comment>
        <translation>
            <numerusform>%n l’a peut-être</numerusform>
            <numerusform>%n l’ont peut-être</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n members</source>
        <comment>%n member</comment>
        <translation>
            <numerusform>%n membre</numerusform>
            <numerusform>%n membres</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n members more</source>
        <comment>%n member more</comment>
        <translation>
            <numerusform>%n membre de plus</numerusform>
            <numerusform>%n membres de plus</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages</source>
        <comment>%n message</comment>
        <translation>
            <numerusform>%n message</numerusform>
            <numerusform>%n messages</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages are asked for again: members and Stores may have them.</source>
        <comment>%n message is asked for again: members and Stores may have it.</comment>
        <translation>
            <numerusform>%n message est redemandé&#xa0;: des membres ou des Stores l’ont peut-être.</numerusform>
            <numerusform>%n messages sont redemandés&#xa0;: des membres ou des Stores les ont peut-être.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages beyond what one author may send in a day; kept aside, or known by their ids alone.</source>
        <comment>%n message beyond what one author may send in a day; kept aside, or known by their ids alone.</comment>
        <translation>
            <numerusform>%n message au-delà de ce qu’un auteur peut envoyer en un jour&#x202f;; mis de côté, ou connu seulement par son identifiant.</numerusform>
            <numerusform>%n messages au-delà de ce qu’un auteur peut envoyer en un jour&#x202f;; mis de côté, ou connus seulement par leurs identifiants.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages could not be sent yet. Nothing is lost: sending goes on when you start Causerie again.</source>
        <comment>%n message could not be sent yet. Nothing is lost: sending goes on when you start Causerie again.</comment>
        <translation>
            <numerusform>%n message n’a pas encore pu être envoyé. Rien n’est perdu&#xa0;: l’envoi reprend quand vous relancez Causerie.</numerusform>
            <numerusform>%n messages n’ont pas encore pu être envoyés. Rien n’est perdu&#xa0;: l’envoi reprend quand vous relancez Causerie.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages dated by a wrong clock and said again; the copy took their place.</source>
        <comment>%n message dated by a wrong clock and said again; the copy took their place.</comment>
        <translation>
            <numerusform>%n message daté par une horloge fausse et redit&#x202f;; la copie a pris sa place.</numerusform>
            <numerusform>%n messages datés par une horloge fausse et redits&#x202f;; la copie a pris leur place.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages from a peer that says so much that the next ones had to wait.</source>
        <comment>%n message from a peer that says so much that the next ones had to wait.</comment>
        <translation>
            <numerusform>%n message d’un pair qui en dit tant que les suivants ont dû attendre.</numerusform>
            <numerusform>%n messages d’un pair qui en dit tant que les suivants ont dû attendre.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages from the future between two people; placed by this device&apos;s clock.</source>
        <comment>%n message from the future between two people; placed by this device&apos;s clock.</comment>
        <translation>
            <numerusform>%n message du futur entre deux personnes&#x202f;; placé selon l’horloge de cet appareil.</numerusform>
            <numerusform>%n messages du futur entre deux personnes&#x202f;; placés selon l’horloge de cet appareil.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages from the future by this device&apos;s clock; held until their time.</source>
        <comment>%n message from the future by this device&apos;s clock; held until their time.</comment>
        <translation>
            <numerusform>%n message du futur selon l’horloge de cet appareil&#x202f;; retenu jusqu’à son heure.</numerusform>
            <numerusform>%n messages du futur selon l’horloge de cet appareil&#x202f;; retenus jusqu’à leur heure.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages from the future for which there was no room; fetched again later.</source>
        <comment>%n message from the future for which there was no room; fetched again later.</comment>
        <translation>
            <numerusform>%n message du futur pour lequel il n’y avait pas de place&#x202f;; récupéré à nouveau plus tard.</numerusform>
            <numerusform>%n messages du futur pour lesquels il n’y avait pas de place&#x202f;; récupérés à nouveau plus tard.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages held from the future that made room for sooner ones; fetched again later.</source>
        <comment>%n message held from the future that made room for sooner ones; fetched again later.</comment>
        <translation>
            <numerusform>%n message du futur, retenu, qui a laissé la place à de plus proches&#x202f;; récupéré à nouveau plus tard.</numerusform>
            <numerusform>%n messages du futur, retenus, qui ont laissé la place à de plus proches&#x202f;; récupérés à nouveau plus tard.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages known here already, with another history under the same id; the first stays.</source>
        <comment>%n message known here already, with another history under the same id; the first stays.</comment>
        <translation>
            <numerusform>%n message déjà connu ici, avec un autre historique sous le même identifiant&#x202f;; le premier reste.</numerusform>
            <numerusform>%n messages déjà connus ici, avec un autre historique sous le même identifiant&#x202f;; le premier reste.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages known to be beyond that, that came once more; ignored.</source>
        <comment>%n message known to be beyond that, that came once more; ignored.</comment>
        <translation>
            <numerusform>%n message connu pour être au-delà, venu une fois de plus&#x202f;; ignoré.</numerusform>
            <numerusform>%n messages connus pour être au-delà, venus une fois de plus&#x202f;; ignorés.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages lost</source>
        <comment>%n message lost</comment>
        <translation>
            <numerusform>%n message perdu</numerusform>
            <numerusform>%n messages perdus</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages mention you</source>
        <comment>%n message mentions you</comment>
        <translation>
            <numerusform>%n message vous mentionne</numerusform>
            <numerusform>%n messages vous mentionnent</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages missing</source>
        <comment>%n message missing</comment>
        <translation>
            <numerusform>%n message manquant</numerusform>
            <numerusform>%n messages manquants</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages numbered in a way that cannot be; refused.</source>
        <comment>%n message numbered in a way that cannot be; refused.</comment>
        <translation>
            <numerusform>%n message numéroté d’une façon impossible&#x202f;; refusé.</numerusform>
            <numerusform>%n messages numérotés d’une façon impossible&#x202f;; refusés.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages of another channel; ignored.</source>
        <comment>%n message of another channel; ignored.</comment>
        <translation>
            <numerusform>%n message d’un autre canal&#x202f;; ignoré.</numerusform>
            <numerusform>%n messages d’un autre canal&#x202f;; ignorés.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages of open channels that waited for each other; shown in the order of their times.</source>
        <comment>%n message of an open channel that waited for what waits for it; shown at its time.</comment>
        <translation>
            <numerusform>%n message d’un canal ouvert qui attendait ce qui l’attend&#x202f;; affiché à son heure.</numerusform>
            <numerusform>%n messages de canaux ouverts qui s’attendaient les uns les autres&#x202f;; affichés dans l’ordre de leurs heures.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages of others who were removed are not shown.</source>
        <comment>%n message of others who were removed is not shown.</comment>
        <translation>
            <numerusform>%n message d’autres personnes retirées n’est pas affiché.</numerusform>
            <numerusform>%n messages d’autres personnes retirées ne sont pas affichés.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages of yours never got out and will be lost.</source>
        <comment>%n message of yours never got out and will be lost.</comment>
        <translation>
            <numerusform>%n de vos messages n’est jamais parti et sera perdu.</numerusform>
            <numerusform>%n de vos messages ne sont jamais partis et seront perdus.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages padded in another way than all others; refused.</source>
        <comment>%n message padded in another way than all others; refused.</comment>
        <translation>
            <numerusform>%n message complété autrement que tous les autres&#x202f;; refusé.</numerusform>
            <numerusform>%n messages complétés autrement que tous les autres&#x202f;; refusés.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages taken out of the archive to make room: of whoever had put most into it.</source>
        <comment>%n message taken out of the archive to make room: of whoever had put most into it.</comment>
        <translation>
            <numerusform>%n message retiré des archives pour faire de la place&#xa0;: de qui en avait mis le plus.</numerusform>
            <numerusform>%n messages retirés des archives pour faire de la place&#xa0;: de qui en avait mis le plus.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages that came after this device&apos;s clock was set back; placed after earlier ones.</source>
        <comment>%n message that came after this device&apos;s clock was set back; placed after earlier ones.</comment>
        <translation>
            <numerusform>%n message reçu après que l’horloge de cet appareil a été retardée&#x202f;; placé après les précédents.</numerusform>
            <numerusform>%n messages reçus après que l’horloge de cet appareil a été retardée&#x202f;; placés après les précédents.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages that came faster than the archive could take them; not archived.</source>
        <comment>%n message that came faster than the archive could take them; not archived.</comment>
        <translation>
            <numerusform>%n message venu plus vite que les archives ne pouvaient le prendre&#x202f;; non archivé.</numerusform>
            <numerusform>%n messages venus plus vite que les archives ne pouvaient les prendre&#x202f;; non archivés.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages that came once more, sealed as before; ignored.</source>
        <comment>%n message that came once more, sealed as before; ignored.</comment>
        <translation>
            <numerusform>%n message venu une fois de plus, scellé comme avant&#x202f;; ignoré.</numerusform>
            <numerusform>%n messages venus une fois de plus, scellés comme avant&#x202f;; ignorés.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages that claimed to take the place of another, and may not; both stay.</source>
        <comment>%n message that claimed to take the place of another, and may not; both stay.</comment>
        <translation>
            <numerusform>%n message qui prétendait prendre la place d’un autre, sans en avoir le droit&#x202f;; les deux restent.</numerusform>
            <numerusform>%n messages qui prétendaient prendre la place d’un autre, sans en avoir le droit&#x202f;; les deux restent.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages that the shared key of their channel does not open; ignored.</source>
        <comment>%n message that the shared key of its channel does not open; ignored.</comment>
        <translation>
            <numerusform>%n message que la clé partagée de son canal n’ouvre pas&#x202f;; ignoré.</numerusform>
            <numerusform>%n messages que la clé partagée de leur canal n’ouvre pas&#x202f;; ignorés.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages that {name} wrote after the removal are not shown.</source>
        <comment>%n message that {name} wrote after the removal is not shown.</comment>
        <translation>
            <numerusform>%n message écrit par {name} après son retrait n’est pas affiché.</numerusform>
            <numerusform>%n messages écrits par {name} après son retrait ne sont pas affichés.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages wait behind</source>
        <comment>%n message waits behind</comment>
        <translation>
            <numerusform>%n message attend derrière</numerusform>
            <numerusform>%n messages attendent derrière</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages will be deleted for everybody</source>
        <comment>%n message will be deleted for everybody</comment>
        <translation>
            <numerusform>%n message sera supprimé pour tout le monde</numerusform>
            <numerusform>%n messages seront supprimés pour tout le monde</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages with a key made to fit more than one secret; refused.</source>
        <comment>%n message with a key made to fit more than one secret; refused.</comment>
        <translation>
            <numerusform>%n message avec une clé faite pour plus d’un secret&#x202f;; refusé.</numerusform>
            <numerusform>%n messages avec une clé faite pour plus d’un secret&#x202f;; refusés.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages with an id that does not belong to what was said; refused.</source>
        <comment>%n message with an id that does not belong to what was said; refused.</comment>
        <translation>
            <numerusform>%n message dont l’identifiant ne correspond pas à ce qui a été dit&#x202f;; refusé.</numerusform>
            <numerusform>%n messages dont l’identifiant ne correspond pas à ce qui a été dit&#x202f;; refusés.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages with something packed in that nobody can read; refused.</source>
        <comment>%n message with something packed in that nobody can read; refused.</comment>
        <translation>
            <numerusform>%n message contenant quelque chose que personne ne peut lire&#x202f;; refusé.</numerusform>
            <numerusform>%n messages contenant quelque chose que personne ne peut lire&#x202f;; refusés.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n messages with something packed into their content that nobody can read; refused.</source>
        <comment>%n message with something packed into their content that nobody can read; refused.</comment>
        <translation>
            <numerusform>%n message dont le contenu cache quelque chose que personne ne peut lire&#x202f;; refusé.</numerusform>
            <numerusform>%n messages dont le contenu cache quelque chose que personne ne peut lire&#x202f;; refusés.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n missing</source>
        <comment>%n missing</comment>
        <translation>
            <numerusform>%n manquant</numerusform>
            <numerusform>%n manquants</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n more</source>
        <comment>%n more</comment>
        <translation>
            <numerusform>%n autre</numerusform>
            <numerusform>%n autres</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n more cannot be sent.</source>
        <comment>One more cannot be sent.</comment>
        <translation>
            <numerusform>Un autre ne peut pas être envoyé.</numerusform>
            <numerusform>%n autres ne peuvent pas être envoyés.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n more copies, not recorded</source>
        <comment>%n more copy, not recorded</comment>
        <translation>
            <numerusform>%n autre copie, non enregistrée</numerusform>
            <numerusform>%n autres copies, non enregistrées</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n name it</source>
        <comment>%n names it</comment>
        <translation>
            <numerusform>%n le nomme</numerusform>
            <numerusform>%n le nomment</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n new messages</source>
        <comment>%n new message</comment>
        <translation>
            <numerusform>%n nouveau message</numerusform>
            <numerusform>%n nouveaux messages</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n not sent</source>
        <comment>%n not sent</comment>
        <translation>
            <numerusform>%n non envoyé</numerusform>
            <numerusform>%n non envoyés</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n other messages, lost longer ago, not listed</source>
        <comment>%n other message, lost longer ago, not listed</comment>
        <translation>
            <numerusform>%n autre message, perdu il y a plus longtemps, non listé</numerusform>
            <numerusform>%n autres messages, perdus il y a plus longtemps, non listés</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n other records</source>
        <comment>%n other record</comment>
        <translation>
            <numerusform>%n autre enregistrement</numerusform>
            <numerusform>%n autres enregistrements</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n others</source>
        <comment>%n other</comment>
        <translation>
            <numerusform>%n autre</numerusform>
            <numerusform>%n autres</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n people</source>
        <comment>%n person</comment>
        <translation>
            <numerusform>%n personne</numerusform>
            <numerusform>%n personnes</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n people ask to be let in</source>
        <comment>%n person asks to be let in</comment>
        <translation>
            <numerusform>%n personne demande à entrer</numerusform>
            <numerusform>%n personnes demandent à entrer</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n places could not be read.</source>
        <comment>%n place could not be read.</comment>
        <translation>
            <numerusform>%n endroit n’a pas pu être lu.</numerusform>
            <numerusform>%n endroits n’ont pas pu être lus.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n questions for history from somebody who has had enough for this minute; they may ask again.</source>
        <comment>%n question for history from somebody who has had enough for this minute; they may ask again.</comment>
        <translation>
            <numerusform>%n demande d’historique de quelqu’un qui a eu assez pour cette minute&#x202f;; il peut redemander.</numerusform>
            <numerusform>%n demandes d’historique de quelqu’un qui a eu assez pour cette minute&#x202f;; il peut redemander.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n questions for history that took too long to answer; refused.</source>
        <comment>%n question for history that took too long to answer; refused.</comment>
        <translation>
            <numerusform>%n demande d’historique trop longue à satisfaire&#x202f;; refusée.</numerusform>
            <numerusform>%n demandes d’historique trop longues à satisfaire&#x202f;; refusées.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n questions to this device&apos;s services that came too fast; refused.</source>
        <comment>%n question to this device&apos;s services that came too fast; refused.</comment>
        <translation>
            <numerusform>%n question aux services de cet appareil, venue trop vite&#x202f;; refusée.</numerusform>
            <numerusform>%n questions aux services de cet appareil, venues trop vite&#x202f;; refusées.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n questions to this device&apos;s services that were begun and not asked; refused.</source>
        <comment>%n question to this device&apos;s services that were begun and not asked; refused.</comment>
        <translation>
            <numerusform>%n question aux services de cet appareil, commencée et jamais posée&#x202f;; refusée.</numerusform>
            <numerusform>%n questions aux services de cet appareil, commencées et jamais posées&#x202f;; refusées.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n questions to this device&apos;s services that were too many at once; refused.</source>
        <comment>%n question to this device&apos;s services that were too many at once; refused.</comment>
        <translation>
            <numerusform>%n question aux services de cet appareil, de trop à la fois&#x202f;; refusée.</numerusform>
            <numerusform>%n questions aux services de cet appareil, trop nombreuses à la fois&#x202f;; refusées.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n reactions, edits or deletions that say nothing readable; ignored.</source>
        <comment>%n reaction, edit or deletion that says nothing readable; ignored.</comment>
        <translation>
            <numerusform>%n réaction, modification ou suppression qui ne dit rien de lisible&#x202f;; ignorée.</numerusform>
            <numerusform>%n réactions, modifications ou suppressions qui ne disent rien de lisible&#x202f;; ignorées.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n recorded events of the last hour.</source>
        <comment>%n recorded event of the last hour.</comment>
        <translation>
            <numerusform>%n événement enregistré dans la dernière heure.</numerusform>
            <numerusform>%n événements enregistrés dans la dernière heure.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n records are open.</source>
        <comment>%n record is open.</comment>
        <translation>
            <numerusform>%n enregistrement est ouvert.</numerusform>
            <numerusform>%n enregistrements sont ouverts.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n requests to talk for which there was no room; they come again.</source>
        <comment>%n request to talk for which there was no room; they come again.</comment>
        <translation>
            <numerusform>%n demande de discussion pour laquelle il n’y avait pas de place&#x202f;; elle reviendra.</numerusform>
            <numerusform>%n demandes de discussion pour lesquelles il n’y avait pas de place&#x202f;; elles reviendront.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n requests to talk from members of one group for which there was no room; they come again.</source>
        <comment>%n request to talk from members of one group for which there was no room; they come again.</comment>
        <translation>
            <numerusform>%n demande de discussion de membres d’un même groupe pour laquelle il n’y avait pas de place&#x202f;; elle reviendra.</numerusform>
            <numerusform>%n demandes de discussion de membres d’un même groupe pour lesquelles il n’y avait pas de place&#x202f;; elles reviendront.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n requests to talk from strangers for which there was no room; they come again.</source>
        <comment>%n request to talk from strangers for which there was no room; they come again.</comment>
        <translation>
            <numerusform>%n demande de discussion d’inconnus pour laquelle il n’y avait pas de place&#x202f;; elle reviendra.</numerusform>
            <numerusform>%n demandes de discussion d’inconnus pour lesquelles il n’y avait pas de place&#x202f;; elles reviendront.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n service nodes</source>
        <comment>%n service node</comment>
        <translation>
            <numerusform>%n nœud de service</numerusform>
            <numerusform>%n nœuds de service</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n settings found</source>
        <comment>%n setting found</comment>
        <translation>
            <numerusform>%n paramètre trouvé</numerusform>
            <numerusform>%n paramètres trouvés</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n times somebody wanted to edit or delete what another wrote; ignored.</source>
        <comment>%n time somebody wanted to edit or delete what another wrote; ignored.</comment>
        <translation>
            <numerusform>%n fois, quelqu’un a voulu modifier ou supprimer ce qu’un autre a écrit&#x202f;; ignoré.</numerusform>
            <numerusform>%n fois, quelqu’un a voulu modifier ou supprimer ce qu’un autre a écrit&#x202f;; ignoré.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n tries, {reason}.</source>
        <comment>%n try, {reason}.</comment>
        <translation>
            <numerusform>%n tentative, {reason}.</numerusform>
            <numerusform>%n tentatives, {reason}.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n unread</source>
        <comment>%n unread</comment>
        <translation>
            <numerusform>%n non lu</numerusform>
            <numerusform>%n non lus</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n waiting</source>
        <comment>%n waiting</comment>
        <translation>
            <numerusform>%n en attente</numerusform>
            <numerusform>%n en attente</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n waiting to send</source>
        <comment>%n waiting to send</comment>
        <translation>
            <numerusform>%n en attente d’envoi</numerusform>
            <numerusform>%n en attente d’envoi</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n years</source>
        <comment>%n year</comment>
        <translation>
            <numerusform>%n an</numerusform>
            <numerusform>%n ans</numerusform>
        </translation>
    </message>
    <message>
        <source>/ip4, /ip6, /dns4 or /dns6 with the host, then /tcp/ with the port, /ws or /wss for WebSocket, and at the end /p2p/ with the peer id.</source>
        <translation>/ip4, /ip6, /dns4 ou /dns6 avec l’hôte, puis /tcp/ avec le port, /ws ou /wss pour WebSocket, et à la fin /p2p/ avec l’identifiant de pair.</translation>
    </message>
    <message>
        <source>2/MVDS</source>
        <translation>2/MVDS</translation>
    </message>
    <message>
        <source>20 min</source>
        <translation>20 min</translation>
    </message>
    <message>
        <source>5 min</source>
        <translation>5 min</translation>
    </message>
    <message>
        <source>64 digits from 0 to 9 and a to f</source>
        <translation>64 chiffres de 0 à 9 et lettres de a à f</translation>
    </message>
    <message numerus="yes">
        <source>; what wait behind is shown below after a minute</source>
        <comment>; what waits behind is shown below after a minute</comment>
        <translation>
            <numerusform>&#x202f;; ce qui attend derrière s’affiche dessous après une minute</numerusform>
            <numerusform>&#x202f;; ce qui attend derrière s’affiche dessous après une minute</numerusform>
        </translation>
    </message>
    <message>
        <source>A backup cannot be kept inside the profile that it is of: {detail}. Choose another folder.</source>
        <translation>Une sauvegarde ne peut pas être gardée dans le profil même dont elle est la copie&#xa0;: {detail}. Choisissez un autre dossier.</translation>
    </message>
    <message>
        <source>A backup every day</source>
        <translation>Une sauvegarde par jour</translation>
    </message>
    <message>
        <source>A clock can be set by a hundred years at most.</source>
        <translation>Une horloge peut être réglée de cent ans au plus.</translation>
    </message>
    <message>
        <source>A content topic looks like /my-app/1/room/proto; &quot;{given}&quot; does not.</source>
        <translation>Un content topic ressemble à /my-app/1/room/proto&#x202f;; ce n’est pas le cas de «&#xa0;{given}&#xa0;».</translation>
    </message>
    <message>
        <source>A conversation that was left</source>
        <translation>Une conversation quittée</translation>
    </message>
    <message>
        <source>A conversation with faults of its own does not share in those of all. Those of a peer come on top: messages to it, and from it, whatever the conversation.</source>
        <translation>Une conversation qui a ses propres pannes ne subit pas celles de toutes. Celles d’un pair s’y ajoutent et touchent tout message qui va vers lui ou en vient, dans toute conversation.</translation>
    </message>
    <message>
        <source>A device with which this one is connected. The network view says more of each.</source>
        <translation>Un appareil auquel celui-ci est connecté. La vue du réseau en dit plus sur chacun.</translation>
    </message>
    <message>
        <source>A file needs a name.</source>
        <translation>Un fichier a besoin d’un nom.</translation>
    </message>
    <message>
        <source>A folder with a file for each table: events, final orders, messages, members. It holds no text and no names, but whoever has the key can find out whose the pseudonyms are.</source>
        <translation>Un dossier avec un fichier par table&#xa0;: événements, ordres finaux, messages, membres. Il ne contient ni texte ni nom, mais quiconque a la clé peut découvrir à qui sont les pseudonymes.</translation>
    </message>
    <message>
        <source>A folder with a page to read (HTML), the same for programs (JSON), and the files that are on this device. It is not encrypted: whoever has the folder can read it.</source>
        <translation>Un dossier avec une page à lire (HTML), la même chose pour les programmes (JSON), et les fichiers qui sont sur cet appareil. Il n’est pas chiffré&#xa0;: quiconque a le dossier peut le lire.</translation>
    </message>
    <message>
        <source>A key pair is made on this device. Nobody else has its secret half; a backup keeps it for you.</source>
        <translation>Une paire de clés est créée sur cet appareil. Personne d’autre n’en a la moitié secrète&#x202f;; une sauvegarde vous la garde.</translation>
    </message>
    <message>
        <source>A link to a channel with a shared key. A click shows what it says.</source>
        <translation>Un lien vers un canal à clé partagée. Un clic montre ce qu’il contient.</translation>
    </message>
    <message>
        <source>A member</source>
        <translation>Un membre</translation>
    </message>
    <message>
        <source>A member sent it again, because it was missing</source>
        <translation>Un membre l’a renvoyé, parce qu’il manquait</translation>
    </message>
    <message>
        <source>A message can mention {limit} people.</source>
        <translation>Un message peut mentionner {limit} personnes.</translation>
    </message>
    <message>
        <source>A message from before you came</source>
        <translation>Un message d’avant votre arrivée</translation>
    </message>
    <message>
        <source>A message needs some text.</source>
        <translation>Un message a besoin de texte.</translation>
    </message>
    <message>
        <source>A message that is here.</source>
        <translation>Un message qui est ici.</translation>
    </message>
    <message>
        <source>A message that is not here yet</source>
        <translation>Un message qui n’est pas encore ici</translation>
    </message>
    <message>
        <source>A message that needs a newer version</source>
        <translation>Un message qui demande une version plus récente</translation>
    </message>
    <message numerus="yes">
        <source>A name has at most %n characters; the rest was left out.</source>
        <comment>A name has at most %n character; the rest was left out.</comment>
        <translation>
            <numerusform>Un nom a au plus %n caractère&#x202f;; le reste a été omis.</numerusform>
            <numerusform>Un nom a au plus %n caractères&#x202f;; le reste a été omis.</numerusform>
        </translation>
    </message>
    <message>
        <source>A narrow line, and a tenth is lost; five minutes.</source>
        <translation>Une ligne étroite, et un dixième se perd&#x202f;; cinq minutes.</translation>
    </message>
    <message>
        <source>A page up, down</source>
        <translation>Une page vers le haut, vers le bas</translation>
    </message>
    <message>
        <source>A part of it cannot be read any more on this device. Send it again.</source>
        <translation>Une partie ne peut plus être lue sur cet appareil. Envoyez-le à nouveau.</translation>
    </message>
    <message>
        <source>A part of it cannot be read any more on this device. Try again to get it anew.</source>
        <translation>Une partie ne peut plus être lue sur cet appareil. Réessayez pour le récupérer à nouveau.</translation>
    </message>
    <message>
        <source>A passphrase needs {detail} characters or more.</source>
        <translation>Une phrase secrète a besoin d’au moins {detail} caractères.</translation>
    </message>
    <message>
        <source>A passphrase that the old profile had does not protect this one.</source>
        <translation>La phrase secrète de l’ancien profil ne protège pas celui-ci.</translation>
    </message>
    <message>
        <source>A peer has read that copy</source>
        <translation>Un pair a lu cette copie</translation>
    </message>
    <message>
        <source>A person&apos;s contact link. A click shows whose it is.</source>
        <translation>Le lien de contact d’une personne. Un clic montre de qui.</translation>
    </message>
    <message>
        <source>A reaction is one emoji.</source>
        <translation>Une réaction est un seul emoji.</translation>
    </message>
    <message>
        <source>A shard is a number from 0 to {limit}.</source>
        <translation>Un shard est un nombre de 0 à {limit}.</translation>
    </message>
    <message>
        <source>A shared key has {limit} bytes, written as 64 digits from 0 to 9 and a to f.</source>
        <translation>Une clé partagée a {limit} octets, écrits en 64 caractères de 0 à 9 et de a à f.</translation>
    </message>
    <message>
        <source>A thread with three messages</source>
        <translation>Un fil avec trois messages</translation>
    </message>
    <message>
        <source>A topic has at most {limit} characters.</source>
        <translation>Un sujet compte au plus {limit} caractères.</translation>
    </message>
    <message>
        <source>A wrong clock</source>
        <translation>Une horloge fausse</translation>
    </message>
    <message>
        <source>About the conversation</source>
        <translation>À propos de la conversation</translation>
    </message>
    <message>
        <source>About the conversation, and close it</source>
        <translation>À propos de la conversation, et fermer</translation>
    </message>
    <message>
        <source>About the message</source>
        <translation>À propos du message</translation>
    </message>
    <message>
        <source>About this channel…</source>
        <translation>À propos de ce canal…</translation>
    </message>
    <message>
        <source>About this group</source>
        <translation>À propos de ce groupe</translation>
    </message>
    <message>
        <source>About this person</source>
        <translation>À propos de cette personne</translation>
    </message>
    <message>
        <source>About {name}</source>
        <translation>À propos de {name}</translation>
    </message>
    <message>
        <source>Accept</source>
        <translation>Accepter</translation>
    </message>
    <message>
        <source>Accept their request first.</source>
        <translation>Acceptez d’abord sa demande.</translation>
    </message>
    <message>
        <source>Accept {name}</source>
        <translation>Accepter {name}</translation>
    </message>
    <message>
        <source>Accept {name} to write to them</source>
        <translation>Acceptez {name} pour lui écrire</translation>
    </message>
    <message>
        <source>Activities</source>
        <translation>Activités</translation>
    </message>
    <message>
        <source>Add</source>
        <translation>Ajouter</translation>
    </message>
    <message>
        <source>Add a Store by its address</source>
        <translation>Ajouter un Store par son adresse</translation>
    </message>
    <message>
        <source>Add a person</source>
        <translation>Ajouter une personne</translation>
    </message>
    <message>
        <source>Add a person, start a group, or join one with an invitation. Everyone in it sees the same messages in the same order.</source>
        <translation>Ajoutez une personne, créez un groupe, ou rejoignez-en un avec une invitation. Tous y voient les mêmes messages dans le même ordre.</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>Adresse</translation>
    </message>
    <message>
        <source>Address of your Store</source>
        <translation>Adresse de votre Store</translation>
    </message>
    <message>
        <source>Address to listen on</source>
        <translation>Adresse d’écoute</translation>
    </message>
    <message>
        <source>Add…</source>
        <translation>Ajouter…</translation>
    </message>
    <message>
        <source>Admin no more</source>
        <translation>Retirer le rôle d’admin</translation>
    </message>
    <message>
        <source>Admin no more…</source>
        <translation>Retirer le rôle d’admin…</translation>
    </message>
    <message>
        <source>Advanced</source>
        <translation>Avancé</translation>
    </message>
    <message numerus="yes">
        <source>After %n minutes</source>
        <comment>After %n minute</comment>
        <translation>
            <numerusform>Après %n&#xa0;minute</numerusform>
            <numerusform>Après %n&#xa0;minutes</numerusform>
        </translation>
    </message>
    <message>
        <source>All</source>
        <translation>Tout</translation>
    </message>
    <message>
        <source>All are understood, whatever the other side uses.</source>
        <translation>Tous sont compris, quoi qu’utilise l’autre côté.</translation>
    </message>
    <message>
        <source>All conversations</source>
        <translation>Toutes les conversations</translation>
    </message>
    <message>
        <source>All files ({all})</source>
        <translation>Tous les fichiers ({all})</translation>
    </message>
    <message>
        <source>All messages can be found.</source>
        <translation>Tous les messages peuvent être trouvés.</translation>
    </message>
    <message>
        <source>All of the file</source>
        <translation>Le fichier entier</translation>
    </message>
    <message>
        <source>All sections</source>
        <translation>Toutes les sections</translation>
    </message>
    <message>
        <source>All settings are lines of one file, which you may edit, too.</source>
        <translation>Tous les paramètres sont des lignes d’un seul fichier, que vous pouvez aussi modifier.</translation>
    </message>
    <message>
        <source>All that can be done with it</source>
        <translation>Tout ce qu’on peut en faire</translation>
    </message>
    <message>
        <source>All there is</source>
        <translation>Tout ce qu’il y a</translation>
    </message>
    <message>
        <source>Allowed: {allowed}.</source>
        <translation>Permis&#xa0;: {allowed}.</translation>
    </message>
    <message>
        <source>Allowed: {least} to {most}.</source>
        <translation>Autorisé&#xa0;: de {least} à {most}.</translation>
    </message>
    <message>
        <source>Always connect to, one address on each line</source>
        <translation>Toujours se connecter à, une adresse par ligne</translation>
    </message>
    <message>
        <source>An acknowledgement from any of: {names}</source>
        <translation>Un accusé de réception de l’un de&#xa0;: {names}</translation>
    </message>
    <message>
        <source>An admin lets people in, removes members, and changes the group&apos;s name, topic and picture. Only who ranks higher can take that back: the owner, and admins who became it earlier.</source>
        <translation>Un admin fait entrer des gens, retire des membres et change le nom, le sujet et l’image du groupe. Seuls ceux d’un rang plus élevé peuvent revenir dessus&#xa0;: le créateur, et les admins nommés plus tôt.</translation>
    </message>
    <message>
        <source>An invitation to a group. A click shows what it says.</source>
        <translation>Une invitation à un groupe. Un clic montre ce qu’elle dit.</translation>
    </message>
    <message>
        <source>Animals and nature</source>
        <translation>Animaux et nature</translation>
    </message>
    <message numerus="yes">
        <source>Another %n lines are wrong.</source>
        <comment>Another %n line is wrong.</comment>
        <translation>
            <numerusform>%n autre ligne est fausse.</numerusform>
            <numerusform>%n autres lignes sont fausses.</numerusform>
        </translation>
    </message>
    <message>
        <source>Another folder…</source>
        <translation>Autre dossier…</translation>
    </message>
    <message>
        <source>Another one</source>
        <translation>Une autre</translation>
    </message>
    <message>
        <source>Another process keeps the database locked.</source>
        <translation>Un autre processus garde la base de données verrouillée.</translation>
    </message>
    <message>
        <source>Another version of Causerie was started while this one is open. A link that it brought is opened here. For anything else, quit this one and start the other again.</source>
        <translation>Une autre version de Causerie a été lancée pendant que celle-ci est ouverte. Le lien qu’elle a apporté s’ouvre ici. Pour le reste, quittez celle-ci et relancez l’autre.</translation>
    </message>
    <message>
        <source>Answers</source>
        <translation>Répond</translation>
    </message>
    <message>
        <source>Answers in {number} ms</source>
        <translation>Répond en {number}&#xa0;ms</translation>
    </message>
    <message>
        <source>Any time</source>
        <translation>N’importe quand</translation>
    </message>
    <message>
        <source>Anybody</source>
        <translation>N’importe qui</translation>
    </message>
    <message>
        <source>Anyone can take any name. Compare the safety number by another way: whoever has the same is who they say.</source>
        <translation>N’importe qui peut prendre n’importe quel nom. Comparez le numéro de sécurité par un autre moyen&#xa0;: qui a le même est bien qui il dit être.</translation>
    </message>
    <message>
        <source>Anyone can take any name: compare the fingerprint if you can. They learn only that their request arrived.</source>
        <translation>N’importe qui peut prendre n’importe quel nom&#xa0;: comparez l’empreinte si vous le pouvez. La personne apprend seulement que sa demande est arrivée.</translation>
    </message>
    <message>
        <source>Anyone with the link</source>
        <translation>Qui a le lien</translation>
    </message>
    <message>
        <source>Anyone with the link can come in and read along, and nobody has a role. Who made the group can remove somebody: that ends the link for good, and people come in by invitations.</source>
        <translation>Quiconque a le lien peut entrer et lire, et personne n’a de rôle. Qui a créé le groupe peut retirer quelqu’un&#xa0;: cela met fin au lien pour de bon, et on entre alors par invitation.</translation>
    </message>
    <message>
        <source>Anyone with the link is in this group, so nobody can do that here.</source>
        <translation>Toute personne qui a le lien fait partie de ce groupe&#xa0;: personne ne peut donc faire cela ici.</translation>
    </message>
    <message>
        <source>Anyone with this link can read this group</source>
        <translation>Quiconque a ce lien peut lire ce groupe</translation>
    </message>
    <message>
        <source>Anywhere</source>
        <translation>Partout</translation>
    </message>
    <message>
        <source>Appearance</source>
        <translation>Apparence</translation>
    </message>
    <message>
        <source>Apply</source>
        <translation>Appliquer</translation>
    </message>
    <message>
        <source>Apply: {what}</source>
        <translation>Appliquer&#xa0;: {what}</translation>
    </message>
    <message>
        <source>Archive</source>
        <translation>Archiver</translation>
    </message>
    <message>
        <source>Archived: {number}</source>
        <translation>Archives&#xa0;: {number}</translation>
    </message>
    <message>
        <source>Archived: {number}, {unread} unread</source>
        <translation>Archives&#xa0;: {number}, dont {unread} non lus</translation>
    </message>
    <message>
        <source>Arrived late, and was put where it belongs.</source>
        <translation>Arrivé en retard, et mis à sa place.</translation>
    </message>
    <message>
        <source>Arrived late.</source>
        <translation>Arrivé en retard.</translation>
    </message>
    <message>
        <source>As Causerie</source>
        <translation>Comme Causerie</translation>
    </message>
    <message>
        <source>As costs least</source>
        <translation>Au moindre coût</translation>
    </message>
    <message>
        <source>As js-waku</source>
        <translation>Comme js-waku</translation>
    </message>
    <message>
        <source>As many files are kept here as there may be; delete some first.</source>
        <translation>Il y a déjà ici autant de fichiers qu’il peut y en avoir&#x202f;; supprimez-en d’abord.</translation>
    </message>
    <message>
        <source>As others do</source>
        <translation>Comme les autres</translation>
    </message>
    <message>
        <source>As the channel is called</source>
        <translation>Selon le nom du canal</translation>
    </message>
    <message>
        <source>As the desktop</source>
        <translation>Comme le bureau</translation>
    </message>
    <message>
        <source>Ask</source>
        <translation>Demander</translation>
    </message>
    <message>
        <source>Ask again</source>
        <translation>Redemander</translation>
    </message>
    <message>
        <source>Ask before an address is opened</source>
        <translation>Demander avant d’ouvrir une adresse</translation>
    </message>
    <message>
        <source>Ask for it at every start</source>
        <translation>La demander à chaque démarrage</translation>
    </message>
    <message>
        <source>Ask me</source>
        <translation>Me demander</translation>
    </message>
    <message>
        <source>Ask one of the admins to invite whom you want to have here.</source>
        <translation>Demandez à un admin d’inviter la personne que vous voulez avoir ici.</translation>
    </message>
    <message>
        <source>Ask to join {group}</source>
        <translation>Demander à rejoindre {group}</translation>
    </message>
    <message>
        <source>Ask whether there is a newer version</source>
        <translation>Demander s’il existe une version plus récente</translation>
    </message>
    <message>
        <source>Ask {name}</source>
        <translation>Demander à {name}</translation>
    </message>
    <message>
        <source>Ask {name} for a new one.</source>
        <translation>Demandez-en une nouvelle à {name}.</translation>
    </message>
    <message>
        <source>Ask {name} to talk?</source>
        <translation>Demander une conversation privée à {name}&#x202f;?</translation>
    </message>
    <message numerus="yes">
        <source>Asked %n times</source>
        <comment>Asked %n time</comment>
        <translation>
            <numerusform>Demandé %n fois</numerusform>
            <numerusform>Demandé %n fois</numerusform>
        </translation>
    </message>
    <message>
        <source>Asked at every start, and when the window is locked.</source>
        <translation>Demandée à chaque démarrage, et quand la fenêtre est verrouillée.</translation>
    </message>
    <message>
        <source>Asked at {time}: without it {lack}, without an answer {silent}.</source>
        <translation>Interrogés à {time}&#xa0;: sans lui {lack}, sans réponse {silent}.</translation>
    </message>
    <message>
        <source>Asked for the message that is not here yet</source>
        <translation>Le message qui n’est pas encore là a été demandé</translation>
    </message>
    <message>
        <source>Asked for, and fetched by and by</source>
        <translation>Demandé, sera récupéré dès que possible</translation>
    </message>
    <message>
        <source>Asked once</source>
        <translation>Demandé une fois</translation>
    </message>
    <message>
        <source>Asked since {time}. {name}&apos;s device has to be online once to let you in. This device keeps asking by itself, also after a restart.</source>
        <translation>Demandé depuis {time}. L’appareil de {name} doit être en ligne une fois pour vous faire entrer. Cet appareil continue de demander tout seul, même après un redémarrage.</translation>
    </message>
    <message>
        <source>Asked twice</source>
        <translation>Demandé deux fois</translation>
    </message>
    <message>
        <source>Asked when the window is locked; the key file opens the profile at a start.</source>
        <translation>Demandée quand la fenêtre est verrouillée&#x202f;; le fichier de clé ouvre le profil au démarrage.</translation>
    </message>
    <message>
        <source>Asked when the window is locked; the system keyring opens the profile at a start.</source>
        <translation>Demandée quand la fenêtre est verrouillée&#x202f;; le trousseau du système ouvre le profil au démarrage.</translation>
    </message>
    <message>
        <source>Asked {time}</source>
        <translation>Demande de {time}</translation>
    </message>
    <message>
        <source>Asking Stores for what is missing, {number} new</source>
        <translation>Demande de ce qui manque aux Stores, {number} nouveaux</translation>
    </message>
    <message>
        <source>Asking Stores for what is missing…</source>
        <translation>Demande de ce qui manque aux Stores…</translation>
    </message>
    <message numerus="yes">
        <source>Asking contacts %n addresses of theirs.</source>
        <comment>Asking contacts %n address of theirs.</comment>
        <translation>
            <numerusform>La demande contacte %n de ses adresses.</numerusform>
            <numerusform>La demande contacte %n de ses adresses.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Asking for %n messages</source>
        <comment>Asking for %n message</comment>
        <translation>
            <numerusform>Demande de %n message</numerusform>
            <numerusform>Demande de %n messages</numerusform>
        </translation>
    </message>
    <message>
        <source>At most {most} files go out at once.</source>
        <translation>Au plus {most} fichiers partent à la fois.</translation>
    </message>
    <message>
        <source>At once</source>
        <translation>Aussitôt</translation>
    </message>
    <message>
        <source>Attempts</source>
        <translation>Tentatives</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>Automatique</translation>
    </message>
    <message>
        <source>Automatic: direct, and through service nodes while nobody else can be reached. Direct: this device passes messages on. Service nodes: everything goes through them; they learn which topics you follow, and not what is written.</source>
        <translation>Automatique&#xa0;: en direct, et par des nœuds de service tant que personne d’autre n’est joignable. Direct&#xa0;: cet appareil transmet des messages. Nœuds de service&#xa0;: tout passe par eux&#x202f;; ils apprennent quels sujets vous suivez, mais pas ce qui est écrit.</translation>
    </message>
    <message>
        <source>Back</source>
        <translation>Retour</translation>
    </message>
    <message>
        <source>Back from the archive</source>
        <translation>Revenir des archives</translation>
    </message>
    <message>
        <source>Back to the chat</source>
        <translation>Retour à la discussion</translation>
    </message>
    <message>
        <source>Back to the conversations</source>
        <translation>Retour aux conversations</translation>
    </message>
    <message>
        <source>Back to the group</source>
        <translation>Retour au groupe</translation>
    </message>
    <message>
        <source>Back to the names</source>
        <translation>Retour aux noms</translation>
    </message>
    <message>
        <source>Back up</source>
        <translation>Sauvegarder</translation>
    </message>
    <message>
        <source>Back up every day</source>
        <translation>Sauvegarder chaque jour</translation>
    </message>
    <message>
        <source>Back up…</source>
        <translation>Sauvegarder…</translation>
    </message>
    <message>
        <source>Backed up</source>
        <translation>Sauvegardé</translation>
    </message>
    <message>
        <source>Backup</source>
        <translation>Sauvegarde</translation>
    </message>
    <message>
        <source>Backups (*{ending})</source>
        <translation>Sauvegardes (*{ending})</translation>
    </message>
    <message>
        <source>Bandwidth</source>
        <translation>Débit</translation>
    </message>
    <message>
        <source>Being deleted for everybody…</source>
        <translation>Suppression pour tout le monde…</translation>
    </message>
    <message numerus="yes">
        <source>Being fetched over %n connections, the furthest: {done}</source>
        <comment>Being fetched: {done}</comment>
        <translation>
            <numerusform>En cours de récupération&#xa0;: {done}</numerusform>
            <numerusform>En cours de récupération par %n connexions, la plus avancée&#xa0;: {done}</numerusform>
        </translation>
    </message>
    <message>
        <source>Being read…</source>
        <translation>Lecture en cours…</translation>
    </message>
    <message>
        <source>Being sealed…</source>
        <translation>Scellement en cours…</translation>
    </message>
    <message>
        <source>Besides these, of so many weeks the newest stays.</source>
        <translation>En plus de celles-ci, la plus récente d’autant de semaines est gardée.</translation>
    </message>
    <message>
        <source>Besides those that invitations name.</source>
        <translation>En plus de ceux que nomment les invitations.</translation>
    </message>
    <message>
        <source>Between two people nothing names anything, so there are no edges.</source>
        <translation>Entre deux personnes, rien ne nomme rien&#xa0;: il n’y a donc pas d’arêtes.</translation>
    </message>
    <message>
        <source>Between …</source>
        <translation>Entre …</translation>
    </message>
    <message>
        <source>Bits set in our Bloom filter.</source>
        <translation>Bits à 1 dans notre filtre de Bloom.</translation>
    </message>
    <message>
        <source>Bits set in our Bloom filter; wrong once in {number}.</source>
        <translation>Bits à 1 dans notre filtre de Bloom&#x202f;; il se trompe une fois sur {number}.</translation>
    </message>
    <message>
        <source>Block</source>
        <translation>Bloquer</translation>
    </message>
    <message>
        <source>Block {name}?</source>
        <translation>Bloquer {name}&#x202f;?</translation>
    </message>
    <message>
        <source>Blocked</source>
        <translation>Contact bloqué</translation>
    </message>
    <message>
        <source>Block…</source>
        <translation>Bloquer…</translation>
    </message>
    <message>
        <source>Bold, italic, strike</source>
        <translation>Gras, italique, barré</translation>
    </message>
    <message>
        <source>Both are understood, and who uses the other is answered in it.</source>
        <translation>Les deux sont compris, et qui utilise l’autre reçoit sa réponse dans celui-ci.</translation>
    </message>
    <message>
        <source>Both messages are signed, and only one of them fits into the order in which they say that they spoke. Not everybody was sent the same; both are kept here.</source>
        <translation>Les deux messages sont signés, et un seul des deux entre dans l’ordre dans lequel leur auteur dit avoir parlé. Tout le monde n’a pas reçu le même&#x202f;; les deux sont gardés ici.</translation>
    </message>
    <message>
        <source>By content topic</source>
        <translation>Par content topic</translation>
    </message>
    <message>
        <source>By conversation: texts, files, evidence; and what may be let go.</source>
        <translation>Par conversation&#xa0;: textes, fichiers, preuves&#x202f;; et ce qui peut être libéré.</translation>
    </message>
    <message>
        <source>By numbers</source>
        <translation>En chiffres</translation>
    </message>
    <message>
        <source>By so many minutes; below 0: back. Others see the wrong time.</source>
        <translation>D’autant de minutes&#x202f;; moins de 0&#xa0;: en retard. Les autres voient la mauvaise heure.</translation>
    </message>
    <message>
        <source>By the others&apos; clock</source>
        <translation>À l’heure des autres</translation>
    </message>
    <message>
        <source>Bytes of this conversation&apos;s copies, as far as they could be opened.</source>
        <translation>Octets des copies de cette conversation, si elles ont pu être ouvertes.</translation>
    </message>
    <message>
        <source>Calendar</source>
        <translation>Calendrier</translation>
    </message>
    <message>
        <source>Came</source>
        <translation>Venu</translation>
    </message>
    <message>
        <source>Came directly</source>
        <translation>Arrivé directement</translation>
    </message>
    <message>
        <source>Came from a Store</source>
        <translation>Venu d’un Store</translation>
    </message>
    <message>
        <source>Came here; by which way is not recorded</source>
        <translation>Arrivé ici&#x202f;; par quelle voie n’a pas été enregistré</translation>
    </message>
    <message>
        <source>Came over: {conversations}, {messages}, {people}, {files}, {others}.</source>
        <translation>Repris&#xa0;: {conversations}, {messages}, {people}, {files}, {others}.</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Annuler</translation>
    </message>
    <message>
        <source>Cancel (Esc)</source>
        <translation>Annuler (Échap)</translation>
    </message>
    <message>
        <source>Cancel: throws away the {size} that came</source>
        <translation>Annuler&#xa0;: jette les {size} déjà reçus</translation>
    </message>
    <message>
        <source>Cancelled; {size} of {whole} were thrown away</source>
        <translation>Annulé, {size} sur {whole} ont été jetés</translation>
    </message>
    <message>
        <source>Caps lock is on.</source>
        <translation>Le verrouillage des majuscules est activé.</translation>
    </message>
    <message>
        <source>Catching up, {number} new</source>
        <translation>Rattrapage, {number} nouveaux</translation>
    </message>
    <message>
        <source>Catching up…</source>
        <translation>Rattrapage…</translation>
    </message>
    <message>
        <source>Causal history</source>
        <translation>Historique causal</translation>
    </message>
    <message>
        <source>Causal order</source>
        <translation>Ordre causal</translation>
    </message>
    <message>
        <source>Causal order as a table</source>
        <translation>L’ordre causal en tableau</translation>
    </message>
    <message numerus="yes">
        <source>Causal order of %n messages</source>
        <comment>Causal order of %n message</comment>
        <translation>
            <numerusform>Ordre causal de %n message</numerusform>
            <numerusform>Ordre causal de %n messages</numerusform>
        </translation>
    </message>
    <message>
        <source>Causerie could not start</source>
        <translation>Causerie n’a pas pu démarrer</translation>
    </message>
    <message>
        <source>Causerie fetches no picture from the web. Copy it and paste it here.</source>
        <translation>Causerie ne va chercher aucune image sur le web. Copiez-la et collez-la ici.</translation>
    </message>
    <message>
        <source>Causerie is locked</source>
        <translation>Causerie est verrouillée</translation>
    </message>
    <message>
        <source>Causerie opens web addresses (https and http) and mail addresses only.</source>
        <translation>Causerie n’ouvre que les adresses web (https et http) et les adresses e-mail.</translation>
    </message>
    <message>
        <source>Causerie sees other windows only if System Settings, Privacy, Screen Recording allows it.</source>
        <translation>Causerie ne voit les autres fenêtres que si Réglages Système, Confidentialité, Enregistrement de l’écran le permet.</translation>
    </message>
    <message>
        <source>Causerie starts when you log in.</source>
        <translation>Causerie démarre à l’ouverture de votre session.</translation>
    </message>
    <message>
        <source>Causerie {version}</source>
        <translation>Causerie {version}</translation>
    </message>
    <message>
        <source>Causerie {version} was released on {day}.</source>
        <translation>Causerie {version} est parue le {day}.</translation>
    </message>
    <message numerus="yes">
        <source>Causerie: %n unread</source>
        <comment>Causerie: %n unread</comment>
        <translation>
            <numerusform>Causerie&#xa0;: %n non lu</numerusform>
            <numerusform>Causerie&#xa0;: %n non lus</numerusform>
        </translation>
    </message>
    <message>
        <source>Change</source>
        <translation>Changer</translation>
    </message>
    <message>
        <source>Change the passphrase</source>
        <translation>Changer la phrase secrète</translation>
    </message>
    <message>
        <source>Change…</source>
        <translation>Modifier…</translation>
    </message>
    <message>
        <source>Channel id</source>
        <translation>Identifiant du canal</translation>
    </message>
    <message>
        <source>Channel link</source>
        <translation>Lien de canal</translation>
    </message>
    <message>
        <source>Channel with a shared key</source>
        <translation>Canal à clé partagée</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>Discussion</translation>
    </message>
    <message>
        <source>Check the clock</source>
        <translation>Vérifier l’horloge</translation>
    </message>
    <message>
        <source>Choose a backup</source>
        <translation>Choisir une sauvegarde</translation>
    </message>
    <message>
        <source>Choose a conversation</source>
        <translation>Choisissez une conversation</translation>
    </message>
    <message>
        <source>Choose a conversation first</source>
        <translation>Choisissez d’abord une conversation</translation>
    </message>
    <message>
        <source>Choose a file…</source>
        <translation>Choisir un fichier…</translation>
    </message>
    <message>
        <source>Choose a folder…</source>
        <translation>Choisir un dossier…</translation>
    </message>
    <message>
        <source>Choose a picture</source>
        <translation>Choisir une image</translation>
    </message>
    <message>
        <source>Choose a picture of the code, or drop one here</source>
        <translation>Choisissez une image du code, ou déposez-en une ici</translation>
    </message>
    <message>
        <source>Choose a picture…</source>
        <translation>Choisir une image…</translation>
    </message>
    <message>
        <source>Choose files</source>
        <translation>Choisir des fichiers</translation>
    </message>
    <message>
        <source>Click to ask for it</source>
        <translation>Cliquez pour le demander</translation>
    </message>
    <message>
        <source>Clipboard</source>
        <translation>Presse-papiers</translation>
    </message>
    <message>
        <source>Clock</source>
        <translation>Horloge</translation>
    </message>
    <message>
        <source>Clock {off} ahead</source>
        <translation>Horloge en avance de {off}</translation>
    </message>
    <message>
        <source>Clock {off} behind</source>
        <translation>Horloge en retard de {off}</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Fermer</translation>
    </message>
    <message>
        <source>Close and repair…</source>
        <translation>Fermer et réparer…</translation>
    </message>
    <message>
        <source>Close the panel</source>
        <translation>Fermer le panneau</translation>
    </message>
    <message>
        <source>Close the search</source>
        <translation>Fermer la recherche</translation>
    </message>
    <message>
        <source>Close this notice</source>
        <translation>Fermer cet avis</translation>
    </message>
    <message>
        <source>Closed: {why}</source>
        <translation>Fermée&#xa0;: {why}</translation>
    </message>
    <message>
        <source>Cluster</source>
        <translation>Cluster</translation>
    </message>
    <message>
        <source>Cluster and shard</source>
        <translation>Cluster et shard</translation>
    </message>
    <message>
        <source>Cluster and shard are numbers.</source>
        <translation>Le cluster et le shard sont des nombres.</translation>
    </message>
    <message>
        <source>Cluster {cluster}, shard by content topic</source>
        <translation>Cluster {cluster}, shard selon le content topic</translation>
    </message>
    <message>
        <source>Cluster {cluster}, shard {shard}</source>
        <translation>Cluster {cluster}, shard {shard}</translation>
    </message>
    <message>
        <source>Code copied</source>
        <translation>Code copié</translation>
    </message>
    <message>
        <source>Code of the invitation to {name}, to be scanned</source>
        <translation>Code de l’invitation à {name}, à scanner</translation>
    </message>
    <message>
        <source>Code of the safety number with {name}</source>
        <translation>Code du numéro de sécurité avec {name}</translation>
    </message>
    <message>
        <source>Code of your contact link, to be scanned</source>
        <translation>Code de votre lien de contact, à scanner</translation>
    </message>
    <message>
        <source>Colours</source>
        <translation>Couleurs</translation>
    </message>
    <message>
        <source>Comfortable</source>
        <translation>Aérée</translation>
    </message>
    <message>
        <source>Command: {name}</source>
        <translation>Commande&#xa0;: {name}</translation>
    </message>
    <message>
        <source>Compact</source>
        <translation>Compacte</translation>
    </message>
    <message>
        <source>Compare it with {name} when you meet or talk. If it is the same on both devices, nobody is in between.</source>
        <translation>Comparez-le avec {name} quand vous vous voyez ou vous parlez. S’il est le même sur les deux appareils, personne n’est entre vous.</translation>
    </message>
    <message>
        <source>Compare keys…</source>
        <translation>Comparer les clés…</translation>
    </message>
    <message>
        <source>Compare…</source>
        <translation>Comparer…</translation>
    </message>
    <message>
        <source>Connected</source>
        <translation>Connecté</translation>
    </message>
    <message>
        <source>Connected peers</source>
        <translation>Pairs connectés</translation>
    </message>
    <message>
        <source>Connected peers that keep messages. They are asked while no Store of yours is on.</source>
        <translation>Pairs connectés qui gardent des messages. Ils sont interrogés tant qu’aucun de vos Stores n’est activé.</translation>
    </message>
    <message>
        <source>Connected peers that keep messages. They are not asked, because a Store of yours is on.</source>
        <translation>Pairs connectés qui gardent des messages. Ils ne sont pas interrogés, car un de vos Stores est activé.</translation>
    </message>
    <message>
        <source>Connected, by it</source>
        <translation>Connecté, à son initiative</translation>
    </message>
    <message>
        <source>Connected, by this device</source>
        <translation>Connecté, à l’initiative de cet appareil</translation>
    </message>
    <message>
        <source>Connected; in reserve.</source>
        <translation>Connecté&#x202f;; en réserve.</translation>
    </message>
    <message>
        <source>Connected; it passes on what is for you.</source>
        <translation>Connecté&#x202f;; il transmet ce qui est pour vous.</translation>
    </message>
    <message>
        <source>Connecting</source>
        <translation>Connexion</translation>
    </message>
    <message>
        <source>Connections</source>
        <translation>Connexions</translation>
    </message>
    <message>
        <source>Connections from one address</source>
        <translation>Connexions par adresse</translation>
    </message>
    <message>
        <source>Contact link</source>
        <translation>Lien de contact</translation>
    </message>
    <message>
        <source>Contact link of {name}</source>
        <translation>Lien de contact de {name}</translation>
    </message>
    <message>
        <source>Contact link…</source>
        <translation>Lien de contact…</translation>
    </message>
    <message>
        <source>Content that is no text</source>
        <translation>Contenu qui n’est pas du texte</translation>
    </message>
    <message>
        <source>Content that is no text.</source>
        <translation>Contenu qui n’est pas du texte.</translation>
    </message>
    <message>
        <source>Content topic</source>
        <translation>Content topic</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>Continuer</translation>
    </message>
    <message>
        <source>Conversation above</source>
        <translation>Conversation du dessus</translation>
    </message>
    <message>
        <source>Conversation above, below</source>
        <translation>Conversation du dessus, du dessous</translation>
    </message>
    <message>
        <source>Conversation below</source>
        <translation>Conversation du dessous</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>Conversations</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>Copié</translation>
    </message>
    <message>
        <source>Copies per message</source>
        <translation>Copies par message</translation>
    </message>
    <message>
        <source>Copies sent before this time are not recorded</source>
        <translation>Les copies envoyées avant cette heure n’ont pas été enregistrées</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Copier</translation>
    </message>
    <message>
        <source>Copy address</source>
        <translation>Copier l’adresse</translation>
    </message>
    <message>
        <source>Copy as JSON, without the text</source>
        <translation>Copier en JSON, sans le texte</translation>
    </message>
    <message>
        <source>Copy code</source>
        <translation>Copier le code</translation>
    </message>
    <message>
        <source>Copy key</source>
        <translation>Copier la clé</translation>
    </message>
    <message>
        <source>Copy link</source>
        <translation>Copier le lien</translation>
    </message>
    <message>
        <source>Copy message</source>
        <translation>Copier le message</translation>
    </message>
    <message>
        <source>Copy the key</source>
        <translation>Copier la clé</translation>
    </message>
    <message>
        <source>Copy the proof</source>
        <translation>Copier la preuve</translation>
    </message>
    <message>
        <source>Copy, select everything</source>
        <translation>Copier, tout sélectionner</translation>
    </message>
    <message>
        <source>Copying and checking: {percent} %</source>
        <translation>Copie et vérification&#xa0;: {percent}&#xa0;%</translation>
    </message>
    <message>
        <source>Could not read the messages: {reason}</source>
        <translation>Impossible de lire les messages&#xa0;: {reason}</translation>
    </message>
    <message>
        <source>Could not {purpose}: {why}</source>
        <translation>Échec de l’action «&#xa0;{purpose}&#xa0;»&#xa0;: {why}</translation>
    </message>
    <message>
        <source>Counted while this view is open.</source>
        <translation>Compté tant que cette vue est ouverte.</translation>
    </message>
    <message>
        <source>Create channel</source>
        <translation>Créer le canal</translation>
    </message>
    <message>
        <source>Create group</source>
        <translation>Créer le groupe</translation>
    </message>
    <message>
        <source>Ctrl /</source>
        <translation>Ctrl /</translation>
    </message>
    <message>
        <source>Ctrl J</source>
        <translation>Ctrl J</translation>
    </message>
    <message>
        <source>Ctrl N</source>
        <translation>Ctrl N</translation>
    </message>
    <message>
        <source>Ctrl P</source>
        <translation>Ctrl P</translation>
    </message>
    <message>
        <source>Ctrl Shift F</source>
        <translation>Ctrl Maj F</translation>
    </message>
    <message>
        <source>Ctrl with + and - changes it, too; Ctrl with 0 is 100 %.</source>
        <translation>Ctrl avec + et - la change aussi&#x202f;; Ctrl avec 0 donne 100&#xa0;%.</translation>
    </message>
    <message>
        <source>Cut off</source>
        <translation>Couper</translation>
    </message>
    <message>
        <source>Cut off for 30 s</source>
        <translation>Couper 30&#xa0;s</translation>
    </message>
    <message>
        <source>Daily backups begin once you give a passphrase for them on this device.</source>
        <translation>Les sauvegardes quotidiennes commencent dès que vous donnez leur phrase secrète sur cet appareil.</translation>
    </message>
    <message>
        <source>Daily backups: set up</source>
        <translation>Sauvegardes quotidiennes&#xa0;: régler</translation>
    </message>
    <message>
        <source>Daily backups: turn off</source>
        <translation>Sauvegardes quotidiennes&#xa0;: arrêter</translation>
    </message>
    <message>
        <source>Daily ones kept</source>
        <translation>Quotidiennes gardées</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>Sombre</translation>
    </message>
    <message>
        <source>Dark skin tone</source>
        <translation>Peau foncée</translation>
    </message>
    <message>
        <source>Data</source>
        <translation>Données</translation>
    </message>
    <message>
        <source>Days</source>
        <translation>Jours</translation>
    </message>
    <message>
        <source>Decline</source>
        <translation>Refuser</translation>
    </message>
    <message>
        <source>Declined</source>
        <translation>Refusée</translation>
    </message>
    <message>
        <source>Delay</source>
        <translation>Retard</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>Supprimer</translation>
    </message>
    <message>
        <source>Delete for everybody</source>
        <translation>Supprimer pour tout le monde</translation>
    </message>
    <message>
        <source>Delete for you?</source>
        <translation>Supprimer pour vous&#x202f;?</translation>
    </message>
    <message>
        <source>Delete here</source>
        <translation>Supprimer ici</translation>
    </message>
    <message>
        <source>Delete here…</source>
        <translation>Supprimer ici…</translation>
    </message>
    <message>
        <source>Delete this message?</source>
        <translation>Supprimer ce message&#x202f;?</translation>
    </message>
    <message>
        <source>Deleted message</source>
        <translation>Message supprimé</translation>
    </message>
    <message>
        <source>Delete…</source>
        <translation>Supprimer…</translation>
    </message>
    <message>
        <source>Deleting a message</source>
        <translation>Suppression d’un message</translation>
    </message>
    <message>
        <source>Delivered.</source>
        <translation>Remis.</translation>
    </message>
    <message>
        <source>Deliveries are not recorded now, so the report says little of messages.</source>
        <translation>Les livraisons ne sont pas enregistrées en ce moment, le rapport dit donc peu des messages.</translation>
    </message>
    <message>
        <source>Deliveries are not recorded: nothing can be written to {directory}. Chats go on. Make room there, or allow writing; recording then goes on by itself, and the log says how much is missing.</source>
        <translation>Les livraisons ne sont pas enregistrées&#xa0;: rien ne peut être écrit dans {directory}. Les conversations continuent. Faites-y de la place ou autorisez l’écriture&#xa0;; les relevés reprennent alors d’eux-mêmes, et le journal dit combien il en manque.</translation>
    </message>
    <message>
        <source>Delivery</source>
        <translation>Livraison</translation>
    </message>
    <message>
        <source>Delivery log</source>
        <translation>Journal des remises</translation>
    </message>
    <message>
        <source>Delivery of a message</source>
        <translation>Livraison d’un message</translation>
    </message>
    <message>
        <source>Delivery view</source>
        <translation>Vue de la livraison</translation>
    </message>
    <message>
        <source>Density</source>
        <translation>Densité</translation>
    </message>
    <message>
        <source>Details</source>
        <translation>Détails</translation>
    </message>
    <message>
        <source>Direct</source>
        <translation>Direct</translation>
    </message>
    <message>
        <source>Direction</source>
        <translation>Sens</translation>
    </message>
    <message>
        <source>Directly, when it was sent</source>
        <translation>Directement, au moment de l’envoi</translation>
    </message>
    <message>
        <source>Discard</source>
        <translation>Abandonner</translation>
    </message>
    <message>
        <source>Discard this message?</source>
        <translation>Abandonner ce message&#x202f;?</translation>
    </message>
    <message>
        <source>Discard…</source>
        <translation>Abandonner…</translation>
    </message>
    <message>
        <source>Do not disturb</source>
        <translation>Ne pas déranger</translation>
    </message>
    <message>
        <source>Do not remind me</source>
        <translation>Ne pas me le rappeler</translation>
    </message>
    <message>
        <source>Do not send {name}</source>
        <translation>Ne pas envoyer {name}</translation>
    </message>
    <message>
        <source>Does</source>
        <translation>Services</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>Terminé</translation>
    </message>
    <message>
        <source>Draft 0.6</source>
        <translation>Brouillon 0.6</translation>
    </message>
    <message>
        <source>Draft: </source>
        <translation>Brouillon&#xa0;: </translation>
    </message>
    <message>
        <source>Drawing (SVG)…</source>
        <translation>Dessin (SVG)…</translation>
    </message>
    <message>
        <source>Drop here to send to {name}</source>
        <translation>Déposez ici pour envoyer à {name}</translation>
    </message>
    <message>
        <source>Duplicates</source>
        <translation>Doublons</translation>
    </message>
    <message>
        <source>Earlier message that was found</source>
        <translation>Message trouvé précédent</translation>
    </message>
    <message>
        <source>Earlier messages could not be fetched. {why}</source>
        <translation>Les messages antérieurs n’ont pas pu être récupérés. {why}</translation>
    </message>
    <message>
        <source>Earlier messages missing</source>
        <translation>Messages antérieurs manquants</translation>
    </message>
    <message>
        <source>Earlier versions…</source>
        <translation>Versions antérieures…</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>Modifier</translation>
    </message>
    <message>
        <source>Edit group…</source>
        <translation>Modifier le groupe…</translation>
    </message>
    <message>
        <source>Edit message</source>
        <translation>Modifier le message</translation>
    </message>
    <message>
        <source>Edit what you sent last, if nothing is written</source>
        <translation>Modifier votre dernier envoi, si rien n’est écrit</translation>
    </message>
    <message>
        <source>Edited</source>
        <translation>Modifié</translation>
    </message>
    <message>
        <source>Emoji</source>
        <translation>Emoji</translation>
    </message>
    <message>
        <source>Emoji (Ctrl+E)</source>
        <translation>Emoji (Ctrl+E)</translation>
    </message>
    <message>
        <source>Emoji that you use are kept here.</source>
        <translation>Les emojis que vous utilisez sont gardés ici.</translation>
    </message>
    <message>
        <source>Emoji; or write :name:</source>
        <translation>Emoji&#x202f;; ou écrivez :nom:</translation>
    </message>
    <message>
        <source>Encrypted with a key that everybody with the link has; senders are not verified</source>
        <translation>Chiffré avec une clé que possède quiconque a le lien&#x202f;; les expéditeurs ne sont pas vérifiés</translation>
    </message>
    <message>
        <source>English</source>
        <translation>Anglais</translation>
    </message>
    <message>
        <source>Enter its address. You can add more in the settings at any time.</source>
        <translation>Saisissez son adresse. Vous pouvez en ajouter d’autres à tout moment dans les paramètres.</translation>
    </message>
    <message>
        <source>Enter the passphrase…</source>
        <translation>Saisir la phrase secrète…</translation>
    </message>
    <message>
        <source>Enter your passphrase</source>
        <translation>Saisissez votre phrase secrète</translation>
    </message>
    <message>
        <source>Epoch</source>
        <translation>Époque</translation>
    </message>
    <message>
        <source>Erase</source>
        <translation>Effacer</translation>
    </message>
    <message>
        <source>Erase this profile</source>
        <translation>Effacer ce profil</translation>
    </message>
    <message>
        <source>Erase this profile?</source>
        <translation>Effacer ce profil&#x202f;?</translation>
    </message>
    <message>
        <source>Erase…</source>
        <translation>Effacer…</translation>
    </message>
    <message>
        <source>Errors only</source>
        <translation>Erreurs seulement</translation>
    </message>
    <message>
        <source>Every day</source>
        <translation>Chaque jour</translation>
    </message>
    <message>
        <source>Every member</source>
        <translation>Chaque membre</translation>
    </message>
    <message>
        <source>Every member may let others in.</source>
        <translation>Chaque membre peut faire entrer d’autres personnes.</translation>
    </message>
    <message>
        <source>Every other member holds it; to one person: delivered.</source>
        <translation>Tous les autres membres le détiennent&#x202f;; pour une seule personne&#xa0;: remis.</translation>
    </message>
    <message>
        <source>Everybody</source>
        <translation>Tout le monde</translation>
    </message>
    <message>
        <source>Everybody in it must use the same number.</source>
        <translation>Tous ceux qui y sont doivent utiliser le même nombre.</translation>
    </message>
    <message>
        <source>Everybody in the group sees them.</source>
        <translation>Tout le groupe les voit.</translation>
    </message>
    <message>
        <source>Everybody who received an earlier version can still read it.</source>
        <translation>Tous ceux qui ont reçu une version antérieure peuvent encore la lire.</translation>
    </message>
    <message>
        <source>Everyone in a group ends up with the same messages in the same order, and every message shows who holds it.</source>
        <translation>Tous les membres d’un groupe finissent par avoir les mêmes messages dans le même ordre, et chaque message montre qui le détient.</translation>
    </message>
    <message>
        <source>Everything</source>
        <translation>Tout</translation>
    </message>
    <message>
        <source>Everything from the start</source>
        <translation>Tout depuis le début</translation>
    </message>
    <message>
        <source>Everything goes through it, names are looked up by it, and nothing is said on the local network.</source>
        <translation>Tout passe par lui, c’est lui qui cherche les noms, et rien n’est dit sur le réseau local.</translation>
    </message>
    <message>
        <source>Everything is held, both ways, until you stop it.</source>
        <translation>Tout est retenu, dans les deux sens, jusqu’à ce que vous l’arrêtiez.</translation>
    </message>
    <message>
        <source>Everything is read.</source>
        <translation>Tout est lu.</translation>
    </message>
    <message>
        <source>Everything of it on this device. What others have stays with them.</source>
        <translation>Tout ce qui est sur cet appareil. Ce que d’autres ont reste chez eux.</translation>
    </message>
    <message>
        <source>Everything that was recorded</source>
        <translation>Tout ce qui a été noté</translation>
    </message>
    <message>
        <source>Export recorded deliveries</source>
        <translation>Exporter les remises notées</translation>
    </message>
    <message>
        <source>Export recorded deliveries…</source>
        <translation>Exporter les remises notées…</translation>
    </message>
    <message>
        <source>Export {name}?</source>
        <translation>Exporter {name}&#x202f;?</translation>
    </message>
    <message>
        <source>Export…</source>
        <translation>Exporter…</translation>
    </message>
    <message>
        <source>Faces and feelings</source>
        <translation>Visages et émotions</translation>
    </message>
    <message>
        <source>Failed the last time; it is asked again. {reason}</source>
        <translation>A échoué la dernière fois&#x202f;; il est interrogé à nouveau. {reason}</translation>
    </message>
    <message>
        <source>Fair: better with one more word</source>
        <translation>Correcte&#xa0;: mieux avec un mot de plus</translation>
    </message>
    <message>
        <source>Fault bench</source>
        <translation>Banc de pannes</translation>
    </message>
    <message>
        <source>Faults are made on purpose on this device: they spoil messages, not what is measured here.</source>
        <translation>Des pannes volontaires sont en cours sur cet appareil&#xa0;: elles touchent les messages, pas ce qui est mesuré ici.</translation>
    </message>
    <message>
        <source>Faults on purpose</source>
        <translation>Pannes volontaires</translation>
    </message>
    <message>
        <source>Faults on purpose: {what}</source>
        <translation>Pannes volontaires&#xa0;: {what}</translation>
    </message>
    <message>
        <source>Faults that are on</source>
        <translation>Pannes en cours</translation>
    </message>
    <message>
        <source>Fetch</source>
        <translation>Récupérer</translation>
    </message>
    <message>
        <source>Fetch again</source>
        <translation>Récupérer à nouveau</translation>
    </message>
    <message>
        <source>Fetch earlier messages</source>
        <translation>Récupérer des messages antérieurs</translation>
    </message>
    <message>
        <source>Fetch history</source>
        <translation>Récupérer l’historique</translation>
    </message>
    <message>
        <source>Fetch history from Stores</source>
        <translation>Récupérer l’historique des Stores</translation>
    </message>
    <message>
        <source>Fetch pictures by themselves</source>
        <translation>Récupérer les images d’office</translation>
    </message>
    <message>
        <source>Fetched {back_to}.</source>
        <translation>Récupéré&#xa0;: {back_to}.</translation>
    </message>
    <message>
        <source>Fetching earlier messages…</source>
        <translation>Récupération des messages antérieurs…</translation>
    </message>
    <message>
        <source>Fetching history, {back_to}</source>
        <translation>Récupération de l’historique, {back_to}</translation>
    </message>
    <message>
        <source>Field numbers of one-to-one chats</source>
        <translation>Numéros de champs des discussions en tête-à-tête</translation>
    </message>
    <message>
        <source>Fields</source>
        <translation>Champs</translation>
    </message>
    <message>
        <source>File {name}</source>
        <translation>Fichier {name}</translation>
    </message>
    <message>
        <source>File {name}, {words}</source>
        <translation>Fichier {name}, {words}</translation>
    </message>
    <message>
        <source>Files</source>
        <translation>Fichiers</translation>
    </message>
    <message>
        <source>Filter fill</source>
        <translation>Remplissage du filtre</translation>
    </message>
    <message>
        <source>Find people on this network</source>
        <translation>Trouver des personnes sur ce réseau</translation>
    </message>
    <message>
        <source>Fingerprint of its admin, compare it if you can</source>
        <translation>Empreinte de son admin, comparez-la si vous le pouvez</translation>
    </message>
    <message>
        <source>Fingerprint of who invites you, compare it if you can</source>
        <translation>Empreinte de qui vous invite, comparez-la si vous le pouvez</translation>
    </message>
    <message>
        <source>Fingerprint of {name}: {fingerprint}</source>
        <translation>Empreinte de {name}&#xa0;: {fingerprint}</translation>
    </message>
    <message>
        <source>First holder: {name}</source>
        <translation>Premier détenteur&#xa0;: {name}</translation>
    </message>
    <message>
        <source>First signed and sealed by HPKE, not forward secret; later copies by Olm</source>
        <translation>D’abord signé et scellé par HPKE, sans confidentialité persistante&#x202f;; les copies suivantes par Olm</translation>
    </message>
    <message>
        <source>Flags</source>
        <translation>Drapeaux</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>Dossier</translation>
    </message>
    <message>
        <source>Food and drink</source>
        <translation>Nourriture et boissons</translation>
    </message>
    <message>
        <source>For</source>
        <translation>Pour</translation>
    </message>
    <message numerus="yes">
        <source>For %n people</source>
        <comment>For %n person</comment>
        <translation>
            <numerusform>Pour %n personne</numerusform>
            <numerusform>Pour %n personnes</numerusform>
        </translation>
    </message>
    <message>
        <source>For 1 hour</source>
        <translation>Pendant 1 heure</translation>
    </message>
    <message>
        <source>For 8 hours</source>
        <translation>Pendant 8 heures</translation>
    </message>
    <message>
        <source>For everybody: the message of {name} is hidden in the whole group. Everybody sees that you deleted it, and it cannot be undone. Whoever kept a copy can keep it.</source>
        <translation>Pour tout le monde&#xa0;: le message de {name} est masqué dans tout le groupe. Tout le monde voit que vous l’avez supprimé, et c’est définitif. Qui en a gardé une copie peut la garder.</translation>
    </message>
    <message>
        <source>For everybody: the others are asked to hide it, in ten seconds, so that you can still undo it. Whoever has it now, or kept a copy, can keep it.</source>
        <translation>Pour tout le monde&#xa0;: on demande aux autres de le masquer, dans dix secondes, pour que vous puissiez encore annuler. Qui l’a déjà, ou en a gardé une copie, peut la garder.</translation>
    </message>
    <message>
        <source>For example Tide Gauge</source>
        <translation>Par exemple Marégraphe</translation>
    </message>
    <message>
        <source>For example general</source>
        <translation>Par exemple general</translation>
    </message>
    <message>
        <source>For how many</source>
        <translation>Pour combien</translation>
    </message>
    <message>
        <source>For its turn, or for a Store that can be reached.</source>
        <translation>Son tour, ou un Store joignable.</translation>
    </message>
    <message>
        <source>For testers who compare how messages travelled. It holds no text and no names.</source>
        <translation>Pour les testeurs qui comparent le trajet des messages. Cela ne contient ni texte ni nom.</translation>
    </message>
    <message>
        <source>For {names} the group&apos;s new keys are sealed to a long-term key: no fresh one of theirs is here.</source>
        <translation>Pour {names}, les nouvelles clés du groupe sont scellées avec une clé permanente&#xa0;: aucune clé récente de leur part n’est arrivée ici.</translation>
    </message>
    <message>
        <source>Forgotten? Nobody can find it out. A backup, which has a passphrase of its own, can be restored into a new profile; this one stays as it is.</source>
        <translation>Oubliée&#x202f;? Personne ne peut la retrouver. Une sauvegarde, qui a sa propre phrase secrète, peut être restaurée dans un nouveau profil&#x202f;; celui-ci reste tel quel.</translation>
    </message>
    <message>
        <source>Format</source>
        <translation>Format</translation>
    </message>
    <message>
        <source>Forward</source>
        <translation>Transférer</translation>
    </message>
    <message>
        <source>Forward secret since {date}: each message has a key of its own, which is forgotten. Who gets hold of a device later cannot open what was recorded on the way.</source>
        <translation>Confidentialité persistante depuis le {date}&#x202f;: chaque message a sa propre clé, oubliée ensuite. Qui s’empare plus tard d’un appareil ne peut pas ouvrir ce qui a été enregistré en chemin.</translation>
    </message>
    <message>
        <source>Forward to</source>
        <translation>Transférer à</translation>
    </message>
    <message>
        <source>Forwarded</source>
        <translation>Transféré</translation>
    </message>
    <message>
        <source>Forwarded to {name} and {other}.</source>
        <translation>Transféré à {name} et {other}.</translation>
    </message>
    <message numerus="yes">
        <source>Forwarded to {name}, {other} and %n others.</source>
        <comment>Forwarded to {name}, {other} and %n other.</comment>
        <translation>
            <numerusform>Transféré à {name}, {other} et %n autre.</numerusform>
            <numerusform>Transféré à {name}, {other} et %n autres.</numerusform>
        </translation>
    </message>
    <message>
        <source>Forwarded to {name}.</source>
        <translation>Transféré à {name}.</translation>
    </message>
    <message>
        <source>Forward…</source>
        <translation>Transférer…</translation>
    </message>
    <message>
        <source>Found</source>
        <translation>Trouvés</translation>
    </message>
    <message>
        <source>French</source>
        <translation>Français</translation>
    </message>
    <message>
        <source>Friends who compare it with you know that it is really you they talk to.</source>
        <translation>Les amis qui la comparent avec vous savent que c’est bien à vous qu’ils parlent.</translation>
    </message>
    <message>
        <source>Friends who compare it with you know that it is really you.</source>
        <translation>Les amis qui la comparent avec vous savent que c’est bien vous.</translation>
    </message>
    <message>
        <source>From</source>
        <translation>De</translation>
    </message>
    <message>
        <source>From 30 days ago on</source>
        <translation>Depuis 30 jours</translation>
    </message>
    <message>
        <source>From a Store</source>
        <translation>D’un Store</translation>
    </message>
    <message>
        <source>From now on it is written down when each message was sent, arrived, was missing and was acknowledged: for testers who compare their records. The files lie in the profile and are not encrypted. They hold no text, no names and no keys, but message ids, times, and a pseudonym for every person and conversation. Nothing is sent anywhere.</source>
        <translation>À partir de maintenant, il est noté quand chaque message a été envoyé, est arrivé, manquait et a été confirmé&#xa0;: pour les testeurs qui comparent leurs relevés. Les fichiers sont dans le profil et ne sont pas chiffrés. Ils ne contiennent ni texte, ni nom, ni clé, mais des identifiants de messages, des heures, et un pseudonyme pour chaque personne et chaque conversation. Rien n’est envoyé nulle part.</translation>
    </message>
    <message>
        <source>From now on the link of this group lets nobody in any more: people come in by invitations, and members have roles. This cannot be undone. The group&apos;s key changes: once people have heard of it, {name} cannot read what they write. Whoever has the link can go on reading what was written before.</source>
        <translation>Désormais, le lien de ce groupe ne laisse plus entrer personne&#xa0;: on entre par invitation, et les membres ont des rôles. Cela ne peut pas être annulé. La clé du groupe change&#xa0;: une fois que les gens l’ont appris, {name} ne peut pas lire ce qu’ils écrivent. Quiconque a le lien peut continuer à lire ce qui a été écrit avant.</translation>
    </message>
    <message>
        <source>From the next start on.</source>
        <translation>À partir du prochain démarrage.</translation>
    </message>
    <message>
        <source>From this day</source>
        <translation>À partir de ce jour</translation>
    </message>
    <message>
        <source>From {names}</source>
        <translation>De {names}</translation>
    </message>
    <message>
        <source>From {name}.</source>
        <translation>De {name}.</translation>
    </message>
    <message>
        <source>Full address</source>
        <translation>Adresse complète</translation>
    </message>
    <message>
        <source>GIF</source>
        <translation>GIF</translation>
    </message>
    <message>
        <source>GIF from {name}, {time}</source>
        <translation>GIF de {name}, {time}</translation>
    </message>
    <message>
        <source>Give it a name. You can invite people as soon as it is there.</source>
        <translation>Donnez-lui un nom. Vous pourrez inviter des gens dès qu’il existera.</translation>
    </message>
    <message>
        <source>Give them mine</source>
        <translation>Donner le mien</translation>
    </message>
    <message>
        <source>Give {size} back</source>
        <translation>Rendre {size}</translation>
    </message>
    <message>
        <source>Given up: it is sent no more unless you ask</source>
        <translation>Abandonné&#xa0;: il n’est plus envoyé, sauf si vous le demandez</translation>
    </message>
    <message>
        <source>Given up; it still takes its place if it comes</source>
        <translation>Abandonné&#x202f;; il prendra tout de même sa place s’il arrive</translation>
    </message>
    <message>
        <source>Go</source>
        <translation>Aller</translation>
    </message>
    <message>
        <source>Go by the others</source>
        <translation>Suivre les autres</translation>
    </message>
    <message>
        <source>Go by this device&apos;s clock again</source>
        <translation>Suivre de nouveau l’horloge de cet appareil</translation>
    </message>
    <message>
        <source>Go on</source>
        <translation>Reprendre</translation>
    </message>
    <message>
        <source>Go to date</source>
        <translation>Aller à une date</translation>
    </message>
    <message>
        <source>Go to date…</source>
        <translation>Aller à une date…</translation>
    </message>
    <message>
        <source>Group</source>
        <translation>Groupe</translation>
    </message>
    <message>
        <source>Group menu</source>
        <translation>Menu du groupe</translation>
    </message>
    <message>
        <source>Group: {name}</source>
        <translation>Groupe&#xa0;: {name}</translation>
    </message>
    <message>
        <source>Groups</source>
        <translation>Groupes</translation>
    </message>
    <message>
        <source>Groups and people appear here, newest first. Nothing is waiting for you.</source>
        <translation>Les groupes et les personnes apparaissent ici, les plus récents d’abord. Rien ne vous attend.</translation>
    </message>
    <message>
        <source>Groups in common</source>
        <translation>Groupes en commun</translation>
    </message>
    <message>
        <source>Half of the answers came within {number} ms; the last one {time} ago.</source>
        <translation>La moitié des réponses sont venues en {number}&#xa0;ms au plus&#x202f;; la dernière il y a {time}.</translation>
    </message>
    <message>
        <source>Held by</source>
        <translation>Détenu par</translation>
    </message>
    <message>
        <source>Held by all</source>
        <translation>Détenu par tous</translation>
    </message>
    <message>
        <source>Held by all; when is not recorded</source>
        <translation>Détenu par tous&#x202f;; depuis quand n’a pas été enregistré</translation>
    </message>
    <message>
        <source>Held by everyone</source>
        <translation>Détenus par tous</translation>
    </message>
    <message>
        <source>Held by {held} of {of}</source>
        <translation>Détenu par {held} sur {of}</translation>
    </message>
    <message>
        <source>Held by {number} of {all}</source>
        <translation>Détenu par {number} sur {all}</translation>
    </message>
    <message>
        <source>Held by {number} of {all} others, maybe {maybe} more.</source>
        <translation>Détenu par {number} des {all} autres, peut-être {maybe} de plus.</translation>
    </message>
    <message>
        <source>Held by {number} of {all} others.</source>
        <translation>Détenu par {number} des {all} autres.</translation>
    </message>
    <message>
        <source>Held by {number} of {all}, maybe {maybe} more.</source>
        <translation>Détenu par {number} sur {all}, peut-être {maybe} de plus.</translation>
    </message>
    <message>
        <source>Held by {number} of {all}.</source>
        <translation>Détenu par {number} sur {all}.</translation>
    </message>
    <message>
        <source>Held: its time has not come.</source>
        <translation>Retenu&#xa0;: son heure n’est pas venue.</translation>
    </message>
    <message>
        <source>Held: their time has not come</source>
        <translation>Retenus&#xa0;: leur heure n’est pas venue</translation>
    </message>
    <message>
        <source>Held: {clocks}</source>
        <translation>Retenus&#xa0;: {clocks}</translation>
    </message>
    <message>
        <source>Here, and acknowledged to its author</source>
        <translation>Ici, et son auteur en a reçu l’accusé</translation>
    </message>
    <message>
        <source>Hide their messages</source>
        <translation>Masquer ses messages</translation>
    </message>
    <message>
        <source>High contrast</source>
        <translation>Contraste élevé</translation>
    </message>
    <message>
        <source>Histories and retries</source>
        <translation>Historiques et renvois</translation>
    </message>
    <message>
        <source>History</source>
        <translation>Historique</translation>
    </message>
    <message>
        <source>History could not be fetched to the end</source>
        <translation>L’historique n’a pas pu être récupéré jusqu’au bout</translation>
    </message>
    <message>
        <source>History fetched</source>
        <translation>Historique récupéré</translation>
    </message>
    <message>
        <source>History fetched: nothing new</source>
        <translation>Historique récupéré&#xa0;: rien de nouveau</translation>
    </message>
    <message numerus="yes">
        <source>History fetched: {number} new messages</source>
        <comment>History fetched: {number} new message</comment>
        <translation>
            <numerusform>Historique récupéré&#xa0;: {number} nouveau message</numerusform>
            <numerusform>Historique récupéré&#xa0;: {number} nouveaux messages</numerusform>
        </translation>
    </message>
    <message>
        <source>Hotel</source>
        <translation>Hôtel</translation>
    </message>
    <message>
        <source>How do messages wait for you?</source>
        <translation>Comment les messages vous attendent-ils&#x202f;?</translation>
    </message>
    <message>
        <source>How far it is</source>
        <translation>Avancement</translation>
    </message>
    <message>
        <source>How it was sealed is not recorded</source>
        <translation>La manière dont il a été scellé n’est pas enregistrée</translation>
    </message>
    <message>
        <source>How it works</source>
        <translation>Comment ça marche</translation>
    </message>
    <message>
        <source>How messages travel</source>
        <translation>Trajet des messages</translation>
    </message>
    <message>
        <source>How much room conversations and messages take.</source>
        <translation>La place que prennent les conversations et les messages.</translation>
    </message>
    <message>
        <source>How often each of your messages was handed to the network, on average.</source>
        <translation>Combien de fois chacun de vos messages a été remis au réseau, en moyenne.</translation>
    </message>
    <message>
        <source>How the window looks.</source>
        <translation>L’aspect de la fenêtre.</translation>
    </message>
    <message>
        <source>I decide about each person</source>
        <translation>Je décide pour chaque personne</translation>
    </message>
    <message>
        <source>I have a backup</source>
        <translation>J’ai une sauvegarde</translation>
    </message>
    <message>
        <source>Icon in the tray</source>
        <translation>Icône dans la zone de notification</translation>
    </message>
    <message>
        <source>If that was a mistake, talk to {name} and ask for another invitation.</source>
        <translation>Si c’est une erreur, parlez à {name} et demandez une autre invitation.</translation>
    </message>
    <message>
        <source>If the same backup is restored on two devices, nothing breaks, but messages from one person to you reach only one of them for certain. Use one of the two.</source>
        <translation>Si la même sauvegarde est restaurée sur deux appareils, rien ne casse, mais les messages qu’une personne vous écrit n’arrivent à coup sûr que sur l’un d’eux. N’en utilisez qu’un.</translation>
    </message>
    <message>
        <source>If yours is wrong, set it right.</source>
        <translation>Si la vôtre est fausse, réglez-la.</translation>
    </message>
    <message>
        <source>In a folder with the settings of this profile only.</source>
        <translation>Dans un dossier qui ne contient que les paramètres de ce profil.</translation>
    </message>
    <message>
        <source>In all other conversations, and of what strangers sent.</source>
        <translation>Dans toutes les autres conversations, et de ce que des inconnus ont envoyé.</translation>
    </message>
    <message>
        <source>In an open channel nobody is proved to be anybody, so nothing is certain.</source>
        <translation>Dans un canal ouvert, l’identité de personne n’est prouvée, donc rien n’est certain.</translation>
    </message>
    <message>
        <source>In its place, after it had waited {time}</source>
        <translation>À sa place, après avoir attendu {time}</translation>
    </message>
    <message>
        <source>In its place, after it had waited {time} for an earlier message of its author</source>
        <translation>À sa place, après avoir attendu {time} un message antérieur de son auteur</translation>
    </message>
    <message>
        <source>In its place, after it had waited {time} for {name} {id}</source>
        <translation>À sa place, après avoir attendu {time} {id} de {name}</translation>
    </message>
    <message>
        <source>In the place of this profile&apos;s key header is another file, or its beginning is damaged ({detail}). Put the right file back, or restore a backup. Nothing was changed.</source>
        <translation>À la place de l’en-tête de clé de ce profil se trouve un autre fichier, ou son début est endommagé ({detail}). Remettez le bon fichier, ou restaurez une sauvegarde. Rien n’a été changé.</translation>
    </message>
    <message>
        <source>In the settings file &quot;{key}&quot; must be a section ({place}).</source>
        <translation>Dans le fichier de paramètres, «&#xa0;{key}&#xa0;» doit être une section ({place}).</translation>
    </message>
    <message>
        <source>In this conversation, since the program was started.</source>
        <translation>Dans cette conversation, depuis le démarrage du programme.</translation>
    </message>
    <message>
        <source>Inspect</source>
        <translation>Inspecter</translation>
    </message>
    <message>
        <source>Inspect a message, and close it</source>
        <translation>Inspecter un message, et refermer</translation>
    </message>
    <message>
        <source>Inspect it: its life, holders and fields</source>
        <translation>L’inspecter&#xa0;: sa vie, ses détenteurs, ses champs</translation>
    </message>
    <message>
        <source>Into {folder}, once you give a passphrase on this device.</source>
        <translation>Dans {folder}, dès que vous donnez une phrase secrète sur cet appareil.</translation>
    </message>
    <message numerus="yes">
        <source>Into {folder}. %n are kept there.</source>
        <comment>Into {folder}. %n is kept there.</comment>
        <translation>
            <numerusform>Dans {folder}. %n y est gardée.</numerusform>
            <numerusform>Dans {folder}. %n y sont gardées.</numerusform>
        </translation>
    </message>
    <message>
        <source>Invitation</source>
        <translation>Invitation</translation>
    </message>
    <message>
        <source>Invitation from {name}</source>
        <translation>Invitation de {name}</translation>
    </message>
    <message>
        <source>Invitation link</source>
        <translation>Lien d’invitation</translation>
    </message>
    <message>
        <source>Invitation link…</source>
        <translation>Lien d’invitation…</translation>
    </message>
    <message>
        <source>Invitation to a group</source>
        <translation>Invitation à un groupe</translation>
    </message>
    <message>
        <source>Invitation to {group}</source>
        <translation>Invitation à {group}</translation>
    </message>
    <message>
        <source>Invitation to {group}. {inviter}</source>
        <translation>Invitation à {group}. {inviter}</translation>
    </message>
    <message>
        <source>Invitations</source>
        <translation>Invitations</translation>
    </message>
    <message>
        <source>Invitations name them, and members keep messages for each other, too.</source>
        <translation>Les invitations les nomment, et les membres gardent aussi des messages les uns pour les autres.</translation>
    </message>
    <message>
        <source>Invite people</source>
        <translation>Inviter des personnes</translation>
    </message>
    <message>
        <source>Invite to {name}</source>
        <translation>Inviter dans {name}</translation>
    </message>
    <message>
        <source>It arrived after messages that follow it</source>
        <translation>Il est arrivé après des messages qui le suivent</translation>
    </message>
    <message>
        <source>It can stay in the tray and tell you of messages. If it ends, nothing arrives on this device until you start it again. You can change this in the settings.</source>
        <translation>Il peut rester dans la zone de notification et vous signaler les messages. S’il se ferme, rien n’arrive sur cet appareil avant que vous le relanciez. Vous pouvez changer cela dans les paramètres.</translation>
    </message>
    <message>
        <source>It comes again by itself</source>
        <translation>Il revient de lui-même</translation>
    </message>
    <message>
        <source>It does not expire. It lets nobody in any more once whoever made the group has removed somebody.</source>
        <translation>Il n’expire pas. Il ne laisse plus entrer personne dès que qui a créé le groupe a retiré quelqu’un.</translation>
    </message>
    <message>
        <source>It goes on</source>
        <translation>Reprise</translation>
    </message>
    <message>
        <source>It goes out as a message of yours that says it is forwarded: {text}</source>
        <translation>Il part comme un message de vous, marqué comme transféré&#xa0;: {text}</translation>
    </message>
    <message>
        <source>It goes out as soon as what is attached has been read.</source>
        <translation>Le message partira dès que ce qui y est joint aura été lu.</translation>
    </message>
    <message>
        <source>It has not reached anybody yet. It goes from your view and is not sent by itself any more, but what you write after it may still lead others to it.</source>
        <translation>Il n’a encore atteint personne. Il disparaît de votre vue et n’est plus envoyé de lui-même, mais ce que vous écrivez ensuite peut encore y mener les autres.</translation>
    </message>
    <message>
        <source>It is asked again in {time}.</source>
        <translation>Il sera interrogé à nouveau dans {time}.</translation>
    </message>
    <message>
        <source>It is asked for this once. Write it down: nobody can open them without.</source>
        <translation>Elle n’est demandée qu’une fois. Notez-la&#xa0;: personne ne peut les ouvrir sans elle.</translation>
    </message>
    <message>
        <source>It is dialled again if it is one to be kept.</source>
        <translation>Il est rappelé s’il fait partie de ceux à garder.</translation>
    </message>
    <message>
        <source>It is not encrypted (http): others on the way can read and change what it shows.</source>
        <translation>Elle n’est pas chiffrée (http)&#xa0;: d’autres, en chemin, peuvent lire et modifier ce qu’elle affiche.</translation>
    </message>
    <message>
        <source>It is not known whether this was saved: the work was interrupted.</source>
        <translation>On ne sait pas si cela a été enregistré&#xa0;: le travail a été interrompu.</translation>
    </message>
    <message>
        <source>It is not what its message says, so it was thrown away. Only its sender can be to blame.</source>
        <translation>Ce n’est pas ce que dit son message, il a donc été jeté. Seul son expéditeur peut en être la cause.</translation>
    </message>
    <message>
        <source>It is removed from this device only. The others keep it.</source>
        <translation>Il n’est retiré que de cet appareil. Les autres le gardent.</translation>
    </message>
    <message>
        <source>It is the same</source>
        <translation>C’est le même</translation>
    </message>
    <message numerus="yes">
        <source>It is with {names} and %n more.</source>
        <comment>It is with {names} and %n more.</comment>
        <translation>
            <numerusform>Il est chez {names} et %n de plus.</numerusform>
            <numerusform>Il est chez {names} et %n de plus.</numerusform>
        </translation>
    </message>
    <message>
        <source>It is with {names}.</source>
        <translation>Il est chez {names}.</translation>
    </message>
    <message>
        <source>It leaves Causerie and opens in another program, which tells that site your network address.</source>
        <translation>Elle sort de Causerie et s’ouvre dans un autre programme, qui révèle votre adresse réseau à ce site.</translation>
    </message>
    <message>
        <source>It lets nobody in any more. Ask somebody in the group for an invitation.</source>
        <translation>Il ne laisse plus entrer personne. Demandez une invitation à quelqu’un du groupe.</translation>
    </message>
    <message>
        <source>It lets nobody in any more. Ask {name} for a new one.</source>
        <translation>Elle ne fait plus entrer personne. Demandez-en une nouvelle à {name}.</translation>
    </message>
    <message>
        <source>It names</source>
        <translation>Il nomme</translation>
    </message>
    <message numerus="yes">
        <source>It names %n messages</source>
        <comment>It names %n message</comment>
        <translation>
            <numerusform>Il nomme %n message</numerusform>
            <numerusform>Il nomme %n messages</numerusform>
        </translation>
    </message>
    <message>
        <source>It needs a service node: nobody who could be asked is connected. Add a node that keeps files under &quot;Network&quot; in the menu, the same one as its sender.</source>
        <translation>Il faut un nœud de service&#xa0;: personne qui pourrait être interrogé n’est connecté. Ajoutez un nœud qui garde des fichiers sous «&#xa0;Réseau&#xa0;» dans le menu, le même que l’expéditeur.</translation>
    </message>
    <message>
        <source>It never holds what people write, nor keys.</source>
        <translation>Il ne contient jamais ce que les gens écrivent, ni de clés.</translation>
    </message>
    <message>
        <source>It takes its place at {moment}, or when the clocks agree.</source>
        <translation>Il prend sa place à {moment}, ou quand les horloges s’accordent.</translation>
    </message>
    <message>
        <source>It takes its place on {moment}, or when the clocks agree.</source>
        <translation>Il prend sa place le {moment}, ou quand les horloges s’accordent.</translation>
    </message>
    <message>
        <source>It unlocks the window, and opens your messages on this device. Write it down: nobody can find it out, nor can we.</source>
        <translation>Elle déverrouille la fenêtre et ouvre vos messages sur cet appareil. Notez-la&#xa0;: personne ne peut la retrouver, nous non plus.</translation>
    </message>
    <message>
        <source>It was given up. It is safe on this device and can be sent again.</source>
        <translation>Elle a été abandonnée. Elle est en sûreté sur cet appareil et peut être renvoyée.</translation>
    </message>
    <message>
        <source>It was stopped. Nothing was changed.</source>
        <translation>Arrêté. Rien n’a été changé.</translation>
    </message>
    <message>
        <source>It was written before you came, and whoever let you in did not give you its key.</source>
        <translation>Ce message a été écrit avant votre arrivée, et la personne qui vous a fait entrer ne vous en a pas donné la clé.</translation>
    </message>
    <message>
        <source>Its index of all messages.</source>
        <translation>Son index de tous les messages.</translation>
    </message>
    <message>
        <source>Its link ended when somebody was removed, and lets nobody in any more.</source>
        <translation>Son lien a pris fin quand quelqu’un a été retiré, et ne fait plus entrer personne.</translation>
    </message>
    <message>
        <source>Its log of changes is too large to be handed to anybody new. {name} can begin a new group.</source>
        <translation>Son journal des changements est trop grand pour être remis à quelqu’un de nouveau. {name} peut créer un nouveau groupe.</translation>
    </message>
    <message>
        <source>Its messages and its key are removed from this device. Nobody is told, and you can join again only by its link.</source>
        <translation>Ses messages et sa clé sont supprimés de cet appareil. Personne n’est prévenu, et vous ne pourrez le rejoindre que par son lien.</translation>
    </message>
    <message>
        <source>Its messages are removed from this device. Nobody is told, and you can join again by its names.</source>
        <translation>Ses messages sont retirés de cet appareil. Personne n’en est informé, et vous pouvez le rejoindre à nouveau par ses noms.</translation>
    </message>
    <message>
        <source>JSON lines, readable everywhere</source>
        <translation>Lignes JSON, lisibles partout</translation>
    </message>
    <message>
        <source>Join</source>
        <translation>Rejoindre</translation>
    </message>
    <message>
        <source>Join a channel by its names, or make one. Other Waku programs can be in it, too.</source>
        <translation>Rejoignez un canal par ses noms, ou créez-en un. D’autres programmes Waku peuvent y être aussi.</translation>
    </message>
    <message>
        <source>Join channel</source>
        <translation>Rejoindre le canal</translation>
    </message>
    <message>
        <source>Join with an invitation</source>
        <translation>Rejoindre avec une invitation</translation>
    </message>
    <message>
        <source>Join with an invitation…</source>
        <translation>Rejoindre avec une invitation…</translation>
    </message>
    <message>
        <source>Join {group}</source>
        <translation>Rejoindre {group}</translation>
    </message>
    <message>
        <source>Joined {time}</source>
        <translation>Arrivée&#xa0;: {time}</translation>
    </message>
    <message numerus="yes">
        <source>Joining contacts %n addresses</source>
        <comment>Joining contacts %n address</comment>
        <translation>
            <numerusform>Rejoindre contacte %n adresse</numerusform>
            <numerusform>Rejoindre contacte %n adresses</numerusform>
        </translation>
    </message>
    <message>
        <source>Joining…</source>
        <translation>Vous rejoignez le groupe…</translation>
    </message>
    <message>
        <source>Join…</source>
        <translation>Rejoindre…</translation>
    </message>
    <message>
        <source>Keep Causerie running?</source>
        <translation>Laisser Causerie ouvert&#x202f;?</translation>
    </message>
    <message>
        <source>Keep in the list</source>
        <translation>Garder dans la liste</translation>
    </message>
    <message>
        <source>Keep running</source>
        <translation>Laisser ouvert</translation>
    </message>
    <message>
        <source>Keep running in the tray</source>
        <translation>Rester dans la zone de notification</translation>
    </message>
    <message>
        <source>Keep sealed messages for others</source>
        <translation>Garder des messages scellés pour les autres</translation>
    </message>
    <message>
        <source>Keep them</source>
        <translation>Les garder</translation>
    </message>
    <message>
        <source>Keep {address} in the list</source>
        <translation>Garder {address} dans la liste</translation>
    </message>
    <message>
        <source>Kept for others</source>
        <translation>Gardé pour les autres</translation>
    </message>
    <message>
        <source>Key of your records</source>
        <translation>Clé de vos relevés</translation>
    </message>
    <message>
        <source>Key: {key}</source>
        <translation>Clé&#xa0;: {key}</translation>
    </message>
    <message>
        <source>Keys</source>
        <translation>Raccourcis</translation>
    </message>
    <message>
        <source>Kilobytes a second; 0: as it is.</source>
        <translation>Kilo-octets par seconde&#x202f;; 0&#xa0;: tel quel.</translation>
    </message>
    <message>
        <source>Known to be missing</source>
        <translation>On sait qu’il manque</translation>
    </message>
    <message>
        <source>Label in your list</source>
        <translation>Étiquette dans votre liste</translation>
    </message>
    <message>
        <source>Lamport skew</source>
        <translation>Écart de Lamport</translation>
    </message>
    <message>
        <source>Lamport timestamp</source>
        <translation>Horodatage de Lamport</translation>
    </message>
    <message>
        <source>Lamport timestamps of what arrived live, minus this device&apos;s clock. Above zero, somebody&apos;s clock is ahead; below, messages were on their way that long.</source>
        <translation>Estampilles de Lamport de ce qui est arrivé en direct, moins l’horloge de cet appareil. Au-dessus de zéro, une horloge avance&#x202f;; en dessous, les messages ont mis ce temps en route.</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>Langue</translation>
    </message>
    <message>
        <source>Larger</source>
        <translation>Agrandir</translation>
    </message>
    <message>
        <source>Larger ones than 96 KiB, those you sent and those you fetched.</source>
        <translation>Ceux de plus de 96 Kio, que vous avez envoyés ou récupérés.</translation>
    </message>
    <message>
        <source>Larger, smaller, normal text</source>
        <translation>Texte plus grand, plus petit, normal</translation>
    </message>
    <message numerus="yes">
        <source>Last %n requests: {failed} failed; the last one {time} ago.</source>
        <comment>Last %n request: {failed} failed; the last one {time} ago.</comment>
        <translation>
            <numerusform>%n dernière requête&#xa0;: {failed} en échec&#x202f;; la dernière il y a {time}.</numerusform>
            <numerusform>%n dernières requêtes&#xa0;: {failed} en échec&#x202f;; la dernière il y a {time}.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Last %n results: {complete} complete, {omitted} with messages left out, {failed} failed.</source>
        <comment>Last %n result: {complete} complete, {omitted} with messages left out, {failed} failed.</comment>
        <translation>
            <numerusform>%n dernier résultat&#xa0;: {complete} complet, {omitted} avec des messages omis, {failed} en échec.</numerusform>
            <numerusform>%n derniers résultats&#xa0;: {complete} complets, {omitted} avec des messages omis, {failed} en échec.</numerusform>
        </translation>
    </message>
    <message>
        <source>Last 30 days</source>
        <translation>30 derniers jours</translation>
    </message>
    <message>
        <source>Last 365 days</source>
        <translation>365 derniers jours</translation>
    </message>
    <message>
        <source>Last 7 days</source>
        <translation>7 derniers jours</translation>
    </message>
    <message>
        <source>Last asked: {when}.</source>
        <translation>Dernière demande&#xa0;: {when}.</translation>
    </message>
    <message>
        <source>Last heard</source>
        <translation>Dernier signe</translation>
    </message>
    <message>
        <source>Last heard live</source>
        <translation>Dernier signe en direct</translation>
    </message>
    <message>
        <source>Last seen {time}</source>
        <translation>Dernière fois en ligne&#xa0;: {time}</translation>
    </message>
    <message>
        <source>Last year</source>
        <translation>Dernière année</translation>
    </message>
    <message>
        <source>Late</source>
        <translation>En retard</translation>
    </message>
    <message>
        <source>Later</source>
        <translation>Plus tard</translation>
    </message>
    <message>
        <source>Later message that was found</source>
        <translation>Message trouvé suivant</translation>
    </message>
    <message numerus="yes">
        <source>Later messages refer to them.</source>
        <comment>Later messages refer to it.</comment>
        <translation>
            <numerusform>Des messages ultérieurs y renvoient.</numerusform>
            <numerusform>Des messages ultérieurs y renvoient.</numerusform>
        </translation>
    </message>
    <message>
        <source>Leave channel</source>
        <translation>Quitter le canal</translation>
    </message>
    <message>
        <source>Leave channel…</source>
        <translation>Quitter le canal…</translation>
    </message>
    <message>
        <source>Leave group</source>
        <translation>Quitter le groupe</translation>
    </message>
    <message>
        <source>Leave group…</source>
        <translation>Quitter le groupe…</translation>
    </message>
    <message>
        <source>Leave {name}?</source>
        <translation>Quitter {name}&#x202f;?</translation>
    </message>
    <message>
        <source>Leave…</source>
        <translation>Quitter…</translation>
    </message>
    <message>
        <source>Let back</source>
        <translation>Rétablir</translation>
    </message>
    <message>
        <source>Let earlier ones go</source>
        <translation>Supprimer les anciens</translation>
    </message>
    <message>
        <source>Let in</source>
        <translation>Faire entrer</translation>
    </message>
    <message>
        <source>Let it be scanned, or send the link over a channel you trust.</source>
        <translation>Faites-le scanner, ou envoyez le lien par un canal auquel vous vous fiez.</translation>
    </message>
    <message>
        <source>Let {size} go</source>
        <translation>Libérer {size}</translation>
    </message>
    <message>
        <source>Let {size} go too</source>
        <translation>Libérer aussi {size}</translation>
    </message>
    <message>
        <source>Lets peers reach this device directly. 0: the system chooses one.</source>
        <translation>Permet aux pairs de joindre cet appareil directement. 0&#xa0;: le système en choisit un.</translation>
    </message>
    <message>
        <source>Life</source>
        <translation>Vie</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>Clair</translation>
    </message>
    <message>
        <source>Light skin tone</source>
        <translation>Peau claire</translation>
    </message>
    <message>
        <source>Limited</source>
        <translation>Limité</translation>
    </message>
    <message>
        <source>Listen on port</source>
        <translation>Port d’écoute</translation>
    </message>
    <message>
        <source>Live</source>
        <translation>En direct</translation>
    </message>
    <message>
        <source>Live figures, as a table</source>
        <translation>Chiffres en direct, en tableau</translation>
    </message>
    <message>
        <source>Lock</source>
        <translation>Verrouiller</translation>
    </message>
    <message>
        <source>Lock the window</source>
        <translation>Verrouiller la fenêtre</translation>
    </message>
    <message>
        <source>Lock when unused</source>
        <translation>Verrouiller sans activité</translation>
    </message>
    <message>
        <source>Lock with the screen</source>
        <translation>Verrouiller avec l’écran</translation>
    </message>
    <message>
        <source>Locks the window, and protects your messages if this device is lost.</source>
        <translation>Verrouille la fenêtre, et protège vos messages si cet appareil est perdu.</translation>
    </message>
    <message>
        <source>Log</source>
        <translation>Journal</translation>
    </message>
    <message>
        <source>Logs</source>
        <translation>Journaux</translation>
    </message>
    <message>
        <source>Longest delay</source>
        <translation>Retard le plus long</translation>
    </message>
    <message>
        <source>Look again</source>
        <translation>Regarder à nouveau</translation>
    </message>
    <message>
        <source>Look into “{message}”</source>
        <translation>Inspecter «&#xa0;{message}&#xa0;»</translation>
    </message>
    <message>
        <source>Looking for a QR code…</source>
        <translation>Recherche d’un code QR…</translation>
    </message>
    <message>
        <source>Loss</source>
        <translation>Pertes</translation>
    </message>
    <message>
        <source>MB</source>
        <translation>Mo</translation>
    </message>
    <message>
        <source>MVDS forgets a message once it is acknowledged. There are no prekeys: messages are sealed for the key of the other&apos;s profile, which does not change.</source>
        <translation>MVDS oublie un message dès qu’il est acquitté. Il n’y a pas de préclés&#xa0;: les messages sont scellés pour la clé du profil de l’autre, qui ne change pas.</translation>
    </message>
    <message>
        <source>Made on {time}, {size}</source>
        <translation>Faite le {time}, {size}</translation>
    </message>
    <message>
        <source>Make a channel, or join one by its link. Other Waku programs can be in it, too.</source>
        <translation>Créez un canal, ou rejoignez-en un par son lien. D’autres programmes Waku peuvent aussi y être.</translation>
    </message>
    <message>
        <source>Make admin</source>
        <translation>Nommer admin</translation>
    </message>
    <message>
        <source>Make admin…</source>
        <translation>Nommer admin…</translation>
    </message>
    <message>
        <source>Make invitation</source>
        <translation>Créer l’invitation</translation>
    </message>
    <message>
        <source>Make {name} an admin?</source>
        <translation>Nommer {name} admin&#x202f;?</translation>
    </message>
    <message>
        <source>Makes the network bad on purpose, for tests. Nothing you say is lost for good, and a restart ends all of it.</source>
        <translation>Rend le réseau mauvais exprès, pour des essais. Rien de ce que vous dites n’est perdu pour de bon, et un redémarrage met fin à tout.</translation>
    </message>
    <message>
        <source>Mark as read</source>
        <translation>Marquer comme lu</translation>
    </message>
    <message>
        <source>Mark as unread</source>
        <translation>Marquer comme non lu</translation>
    </message>
    <message>
        <source>Maybe held by {maybe} of {all}.</source>
        <translation>Peut-être détenu par {maybe} sur {all}.</translation>
    </message>
    <message>
        <source>Maybe held by {name}</source>
        <translation>Peut-être détenu par {name}</translation>
    </message>
    <message numerus="yes">
        <source>Maybe held under %n names; nobody here is proved.</source>
        <comment>Maybe held under %n name; nobody here is proved.</comment>
        <translation>
            <numerusform>Peut-être détenu sous %n nom&#x202f;; ici rien n’est prouvé.</numerusform>
            <numerusform>Peut-être détenu sous %n noms&#x202f;; ici rien n’est prouvé.</numerusform>
        </translation>
    </message>
    <message>
        <source>Measuring…</source>
        <translation>Mesure en cours…</translation>
    </message>
    <message>
        <source>Medium skin tone</source>
        <translation>Peau mate</translation>
    </message>
    <message>
        <source>Medium-dark skin tone</source>
        <translation>Peau moyennement foncée</translation>
    </message>
    <message>
        <source>Medium-light skin tone</source>
        <translation>Peau moyennement claire</translation>
    </message>
    <message>
        <source>Members</source>
        <translation>Membres</translation>
    </message>
    <message>
        <source>Members are asked again</source>
        <translation>Les membres sont interrogés de nouveau</translation>
    </message>
    <message numerus="yes">
        <source>Members asked %n times</source>
        <comment>Members asked %n time</comment>
        <translation>
            <numerusform>Membres interrogés %n fois</numerusform>
            <numerusform>Membres interrogés %n fois</numerusform>
        </translation>
    </message>
    <message>
        <source>Mention somebody</source>
        <translation>Mentionner quelqu’un</translation>
    </message>
    <message>
        <source>Mentions in muted conversations</source>
        <translation>Mentions dans les conversations en sourdine</translation>
    </message>
    <message>
        <source>Menu</source>
        <translation>Menu</translation>
    </message>
    <message>
        <source>Menu of this channel</source>
        <translation>Menu de ce canal</translation>
    </message>
    <message>
        <source>Menu of this person</source>
        <translation>Menu de cette personne</translation>
    </message>
    <message>
        <source>Mesh</source>
        <translation>Maillage</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>Message</translation>
    </message>
    <message>
        <source>Message above, below</source>
        <translation>Message du dessus, du dessous</translation>
    </message>
    <message>
        <source>Message in {conversation} from {sender}, {time}: {text}</source>
        <translation>Message dans {conversation} de {sender}, {time}&#xa0;: {text}</translation>
    </message>
    <message>
        <source>Message info</source>
        <translation>Infos du message</translation>
    </message>
    <message>
        <source>Message info…</source>
        <translation>Infos du message…</translation>
    </message>
    <message>
        <source>Message to {name}</source>
        <translation>Message à {name}</translation>
    </message>
    <message>
        <source>Message {name}</source>
        <translation>Message à {name}</translation>
    </message>
    <message>
        <source>Message, not available: {reason}</source>
        <translation>Message, indisponible&#xa0;: {reason}</translation>
    </message>
    <message>
        <source>Messages</source>
        <translation>Messages</translation>
    </message>
    <message>
        <source>Messages are kept encrypted on this device.</source>
        <translation>Les messages sont conservés chiffrés sur cet appareil.</translation>
    </message>
    <message>
        <source>Messages are sealed for the members of this group</source>
        <translation>Les messages sont scellés pour les membres de ce groupe</translation>
    </message>
    <message>
        <source>Messages are sealed for the two of you</source>
        <translation>Les messages sont scellés pour vous deux</translation>
    </message>
    <message>
        <source>Messages as</source>
        <translation>Format des messages</translation>
    </message>
    <message>
        <source>Messages asked for among members, and copies sent because of that.</source>
        <translation>Messages demandés entre membres, et copies envoyées pour cela.</translation>
    </message>
    <message>
        <source>Messages carried over</source>
        <translation>Messages repris</translation>
    </message>
    <message numerus="yes">
        <source>Messages carry numbers, and these never came.</source>
        <comment>Messages carry numbers, and this one never came.</comment>
        <translation>
            <numerusform>Les messages portent des numéros, et celui-ci n’est jamais venu.</numerusform>
            <numerusform>Les messages portent des numéros, et ceux-ci ne sont jamais venus.</numerusform>
        </translation>
    </message>
    <message>
        <source>Messages go on coming in. Your passphrase shows them.</source>
        <translation>Les messages continuent d’arriver. Votre phrase secrète les montre.</translation>
    </message>
    <message>
        <source>Messages in the buffers of SDS.</source>
        <translation>Messages dans les tampons de SDS.</translation>
    </message>
    <message>
        <source>Messages per minute</source>
        <translation>Messages par minute</translation>
    </message>
    <message numerus="yes">
        <source>Messages that arrived refer to them, but this device never received them. Noticed on {moment}.</source>
        <comment>Messages that arrived refer to it, but this device never received it. Noticed on {moment}.</comment>
        <translation>
            <numerusform>Des messages arrivés y renvoient, mais cet appareil ne l’a jamais reçu. Remarqué&#xa0;: {moment}.</numerusform>
            <numerusform>Des messages arrivés y renvoient, mais cet appareil ne les a jamais reçus. Remarqué&#xa0;: {moment}.</numerusform>
        </translation>
    </message>
    <message>
        <source>Messages: {said}</source>
        <translation>Messages&#xa0;: {said}</translation>
    </message>
    <message>
        <source>Milliseconds, at least.</source>
        <translation>Millisecondes, au moins.</translation>
    </message>
    <message>
        <source>Milliseconds.</source>
        <translation>Millisecondes.</translation>
    </message>
    <message>
        <source>Missing here</source>
        <translation>Manquants ici</translation>
    </message>
    <message>
        <source>Missing: others have it, this device does not. It is being asked for.</source>
        <translation>Manquant&#xa0;: d’autres l’ont, cet appareil non. Il est en train de le demander.</translation>
    </message>
    <message>
        <source>Missing: where it belongs</source>
        <translation>Manquants&#xa0;: là où est leur place</translation>
    </message>
    <message>
        <source>Month after</source>
        <translation>Mois suivant</translation>
    </message>
    <message>
        <source>Month before</source>
        <translation>Mois précédent</translation>
    </message>
    <message>
        <source>More</source>
        <translation>Plus</translation>
    </message>
    <message>
        <source>More choices</source>
        <translation>Plus de choix</translation>
    </message>
    <message>
        <source>More than {number} records are open; these are due first.</source>
        <translation>Plus de {number} enregistrements sont ouverts&#x202f;; ceux-ci viennent en premier.</translation>
    </message>
    <message>
        <source>Move down</source>
        <translation>Descendre</translation>
    </message>
    <message>
        <source>Move up</source>
        <translation>Monter</translation>
    </message>
    <message>
        <source>Movements</source>
        <translation>Mouvements</translation>
    </message>
    <message>
        <source>Mute</source>
        <translation>Mettre en sourdine</translation>
    </message>
    <message>
        <source>My own Store, too</source>
        <translation>Mon propre Store aussi</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Nom</translation>
    </message>
    <message>
        <source>Name and picture</source>
        <translation>Nom et image</translation>
    </message>
    <message>
        <source>Name of the group</source>
        <translation>Nom du groupe</translation>
    </message>
    <message>
        <source>Name on this device</source>
        <translation>Nom sur cet appareil</translation>
    </message>
    <message>
        <source>Name, topic and picture</source>
        <translation>Nom, sujet et image</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Réseau</translation>
    </message>
    <message>
        <source>Network and Stores</source>
        <translation>Réseau et Stores</translation>
    </message>
    <message>
        <source>Network: peers, and who was heard when</source>
        <translation>Réseau&#xa0;: les pairs, et qui a donné signe quand</translation>
    </message>
    <message>
        <source>Never</source>
        <translation>Jamais</translation>
    </message>
    <message>
        <source>New</source>
        <translation>Nouveau</translation>
    </message>
    <message>
        <source>New group</source>
        <translation>Nouveau groupe</translation>
    </message>
    <message>
        <source>New line</source>
        <translation>Nouvelle ligne</translation>
    </message>
    <message>
        <source>New message</source>
        <translation>Nouveau message</translation>
    </message>
    <message>
        <source>New message from {sender}</source>
        <translation>Nouveau message de {sender}</translation>
    </message>
    <message>
        <source>New messages fill it before the file grows.</source>
        <translation>De nouveaux messages la remplissent avant que le fichier ne grandisse.</translation>
    </message>
    <message>
        <source>New passphrase</source>
        <translation>Nouvelle phrase secrète</translation>
    </message>
    <message>
        <source>New reaction from {sender}</source>
        <translation>Nouvelle réaction de {sender}</translation>
    </message>
    <message>
        <source>New since {time}</source>
        <translation>Nouveau depuis {time}</translation>
    </message>
    <message>
        <source>New versions</source>
        <translation>Nouvelles versions</translation>
    </message>
    <message>
        <source>Next</source>
        <translation>Suivant</translation>
    </message>
    <message>
        <source>Next area</source>
        <translation>Zone suivante</translation>
    </message>
    <message>
        <source>Next attempt</source>
        <translation>Prochaine tentative</translation>
    </message>
    <message>
        <source>No Store answered.</source>
        <translation>Aucun Store n’a répondu.</translation>
    </message>
    <message>
        <source>No Store was asked for it by its hash yet.</source>
        <translation>Aucun Store n’a encore été interrogé par son hachage.</translation>
    </message>
    <message>
        <source>No Store yet</source>
        <translation>Pas encore de Store</translation>
    </message>
    <message>
        <source>No acknowledgement yet, sent again</source>
        <translation>Pas encore d’accusé de réception, renvoyé</translation>
    </message>
    <message>
        <source>No address in it is contacted before you agree.</source>
        <translation>Aucune de ses adresses n’est contactée avant votre accord.</translation>
    </message>
    <message>
        <source>No backup of this device is known yet.</source>
        <translation>Aucune sauvegarde de cet appareil n’est encore connue.</translation>
    </message>
    <message numerus="yes">
        <source>No connected member has these %n files just now. Members said earlier that they have them; if they let them go too, nobody may have them any more.</source>
        <comment>No connected member has this file just now. Members said earlier that they have it; if they let it go too, nobody may have it any more.</comment>
        <translation>
            <numerusform>Aucun membre connecté n’a ce fichier en ce moment. Des membres ont dit plus tôt qu’ils l’ont&#xa0;; s’ils le libèrent aussi, plus personne ne l’aura peut-être.</numerusform>
            <numerusform>Aucun membre connecté n’a ces %n fichiers en ce moment. Des membres ont dit plus tôt qu’ils les ont&#xa0;; s’ils les libèrent aussi, plus personne ne les aura peut-être.</numerusform>
        </translation>
    </message>
    <message>
        <source>No connection with it, until you let it back.</source>
        <translation>Aucune connexion avec lui, jusqu’à ce que vous le rétablissiez.</translation>
    </message>
    <message>
        <source>No conversation of this profile knows of it. If it belongs to one that you are not in, open the link in a profile that is. If you deleted it, or left its conversation, it is gone from here. If it never came, wait until you are connected and the history was fetched, and open the link again.</source>
        <translation>Aucune conversation de ce profil ne le connaît. S’il appartient à une conversation dont vous n’êtes pas membre, ouvrez le lien dans un profil qui l’est. Si vous l’avez supprimé, ou avez quitté sa conversation, il n’est plus ici. S’il n’est jamais arrivé, attendez d’être connecté et que l’historique soit récupéré, puis rouvrez le lien.</translation>
    </message>
    <message>
        <source>No conversation yet</source>
        <translation>Pas encore de conversation</translation>
    </message>
    <message>
        <source>No daily backup could be made. {why}</source>
        <translation>La sauvegarde quotidienne n’a pas pu être faite. {why}</translation>
    </message>
    <message>
        <source>No deliveries were recorded yet.</source>
        <translation>Aucune remise n’a encore été notée.</translation>
    </message>
    <message>
        <source>No emoji is called so.</source>
        <translation>Aucun emoji ne s’appelle ainsi.</translation>
    </message>
    <message>
        <source>No faults are on.</source>
        <translation>Aucune panne n’est en cours.</translation>
    </message>
    <message>
        <source>No key and no mouse in this window. Needs a passphrase.</source>
        <translation>Ni clavier ni souris dans cette fenêtre. Demande une phrase secrète.</translation>
    </message>
    <message numerus="yes">
        <source>No member and no Store has them any more</source>
        <comment>No member and no Store has it any more</comment>
        <translation>
            <numerusform>Plus aucun membre ni aucun Store ne l’a</numerusform>
            <numerusform>Plus aucun membre ni aucun Store ne les a</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>No member and no Store that answered has them; {stores} did not answer</source>
        <comment>No member and no Store that answered has it; {stores} did not answer</comment>
        <translation>
            <numerusform>Ni les membres ni les Stores qui ont répondu ne l’ont&#x202f;; {stores} n’ont pas répondu</numerusform>
            <numerusform>Ni les membres ni les Stores qui ont répondu ne les ont&#x202f;; {stores} n’ont pas répondu</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>No member has them any more</source>
        <comment>No member has it any more</comment>
        <translation>
            <numerusform>Plus aucun membre ne l’a</numerusform>
            <numerusform>Plus aucun membre ne les a</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>No member has them any more; {stores} did not answer</source>
        <comment>No member has it any more; {stores} did not answer</comment>
        <translation>
            <numerusform>Plus aucun membre ne l’a&#x202f;; {stores} n’ont pas répondu</numerusform>
            <numerusform>Plus aucun membre ne les a&#x202f;; {stores} n’ont pas répondu</numerusform>
        </translation>
    </message>
    <message>
        <source>No message was found.</source>
        <translation>Aucun message trouvé.</translation>
    </message>
    <message>
        <source>No messages in this time.</source>
        <translation>Aucun message pendant ce temps.</translation>
    </message>
    <message>
        <source>No messages yet</source>
        <translation>Pas encore de messages</translation>
    </message>
    <message>
        <source>No notification at all, for a while.</source>
        <translation>Aucune notification, pendant un moment.</translation>
    </message>
    <message>
        <source>No peer is connected.</source>
        <translation>Aucun pair n’est connecté.</translation>
    </message>
    <message>
        <source>No peer was connected since the start.</source>
        <translation>Aucun pair n’a été connecté depuis le démarrage.</translation>
    </message>
    <message>
        <source>No picture</source>
        <translation>Pas d’image</translation>
    </message>
    <message>
        <source>No program here opens it. Save it instead.</source>
        <translation>Aucun programme ne l’ouvre ici. Enregistrez-le plutôt.</translation>
    </message>
    <message>
        <source>No program opens folders here: {path}</source>
        <translation>Aucun programme n’ouvre de dossiers ici&#xa0;: {path}</translation>
    </message>
    <message>
        <source>No reply, no edit after all</source>
        <translation>Finalement ni réponse ni modification</translation>
    </message>
    <message>
        <source>No result since the start.</source>
        <translation>Aucun résultat depuis le démarrage.</translation>
    </message>
    <message>
        <source>No service node keeps it: others get it only while you are connected. Add a node that keeps files under &quot;Network&quot; in the menu.</source>
        <translation>Aucun nœud de service ne le garde&#xa0;: les autres ne le reçoivent que tant que vous êtes connecté. Ajoutez un nœud qui garde des fichiers sous «&#xa0;Réseau&#xa0;» dans le menu.</translation>
    </message>
    <message>
        <source>No setting is called that.</source>
        <translation>Aucun paramètre ne s’appelle ainsi.</translation>
    </message>
    <message>
        <source>No sign of them so far</source>
        <translation>Aucun signe de sa part pour l’instant</translation>
    </message>
    <message>
        <source>No skin tone</source>
        <translation>Sans teinte de peau</translation>
    </message>
    <message>
        <source>Nobody and no group is called “{name}”.</source>
        <translation>Aucune personne ni aucun groupe ne s’appelle «&#xa0;{name}&#xa0;».</translation>
    </message>
    <message>
        <source>Nobody any more.</source>
        <translation>Plus personne.</translation>
    </message>
    <message>
        <source>Nobody came by it yet</source>
        <translation>Personne n’est encore venu avec elle</translation>
    </message>
    <message>
        <source>Nobody can be let into this group any more: its log of changes is too large to be handed to anybody new. Everything else goes on. Begin a new group to have more people.</source>
        <translation>Plus personne ne peut entrer dans ce groupe&#xa0;: son journal des changements est trop grand pour être remis à quelqu’un de nouveau. Tout le reste continue. Pour accueillir d’autres personnes, créez un nouveau groupe.</translation>
    </message>
    <message>
        <source>Nobody else is in this group yet.</source>
        <translation>Il n’y a encore personne d’autre dans ce groupe.</translation>
    </message>
    <message>
        <source>Nobody is let in any more</source>
        <translation>Plus personne ne peut entrer</translation>
    </message>
    <message>
        <source>Nobody says that this device&apos;s clock is wrong.</source>
        <translation>Personne ne dit que l’horloge de cet appareil est fausse.</translation>
    </message>
    <message>
        <source>Nobody who was asked has what is missing.</source>
        <translation>Personne parmi ceux qui ont été interrogés n’a ce qui manque.</translation>
    </message>
    <message>
        <source>None</source>
        <translation>Aucun</translation>
    </message>
    <message>
        <source>None is connected</source>
        <translation>Aucun n’est connecté</translation>
    </message>
    <message>
        <source>None yet</source>
        <translation>Pas encore choisi</translation>
    </message>
    <message>
        <source>Normal</source>
        <translation>Normale</translation>
    </message>
    <message>
        <source>Not a picture</source>
        <translation>Pas une image</translation>
    </message>
    <message>
        <source>Not all of the profile could be erased ({detail}). Try again to go on with it.</source>
        <translation>Le profil n’a pas pu être effacé en entier ({detail}). Réessayez pour continuer.</translation>
    </message>
    <message>
        <source>Not all of this file is here.</source>
        <translation>Ce fichier n’est pas ici en entier.</translation>
    </message>
    <message>
        <source>Not asked at present.</source>
        <translation>N’est pas interrogé en ce moment.</translation>
    </message>
    <message>
        <source>Not asked yet</source>
        <translation>Pas encore interrogé</translation>
    </message>
    <message>
        <source>Not asked yet.</source>
        <translation>Pas encore demandé.</translation>
    </message>
    <message>
        <source>Not connected yet</source>
        <translation>Pas encore connecté</translation>
    </message>
    <message>
        <source>Not connected.</source>
        <translation>Non connecté.</translation>
    </message>
    <message>
        <source>Not delivered: </source>
        <translation>Non remis&#xa0;: </translation>
    </message>
    <message>
        <source>Not delivered: {why}</source>
        <translation>Non remis&#xa0;: {why}</translation>
    </message>
    <message>
        <source>Not encrypted: anybody can read and write</source>
        <translation>Non chiffré&#xa0;: n’importe qui peut lire et écrire</translation>
    </message>
    <message>
        <source>Not encrypted: anybody can read and write, under any name.</source>
        <translation>Non chiffré&#xa0;: n’importe qui peut lire et écrire, sous n’importe quel nom.</translation>
    </message>
    <message>
        <source>Not here</source>
        <translation>Pas ici</translation>
    </message>
    <message>
        <source>Not here, and given up</source>
        <translation>Pas ici, et abandonné</translation>
    </message>
    <message>
        <source>Not here; it is looked for</source>
        <translation>Pas ici&#x202f;; il est recherché</translation>
    </message>
    <message>
        <source>Not now</source>
        <translation>Pas maintenant</translation>
    </message>
    <message>
        <source>Not reached: {why}</source>
        <translation>Pas joint&#xa0;: {why}</translation>
    </message>
    <message>
        <source>Not saved: {why} Trying again by itself.</source>
        <translation>Non enregistré&#xa0;: {why} Nouvel essai automatique.</translation>
    </message>
    <message>
        <source>Not seen yet</source>
        <translation>Pas encore en ligne</translation>
    </message>
    <message>
        <source>Not sent.</source>
        <translation>Non envoyé.</translation>
    </message>
    <message>
        <source>Not sent. The reason stands below, with a way to send it again.</source>
        <translation>Non envoyé. La raison est indiquée dessous, avec un moyen de le renvoyer.</translation>
    </message>
    <message>
        <source>Not sent: </source>
        <translation>Non envoyé&#xa0;: </translation>
    </message>
    <message>
        <source>Not sent: {why}</source>
        <translation>Non envoyé&#xa0;: {why}</translation>
    </message>
    <message>
        <source>Not shown here: it waits, or was deleted.</source>
        <translation>Pas affiché ici&#xa0;: il attend, ou a été supprimé.</translation>
    </message>
    <message>
        <source>Not shown on this device</source>
        <translation>Non affiché sur cet appareil</translation>
    </message>
    <message>
        <source>Not this one</source>
        <translation>Pas celle-ci</translation>
    </message>
    <message>
        <source>Not verified any more</source>
        <translation>Ne plus considérer comme vérifié</translation>
    </message>
    <message>
        <source>Not yet here</source>
        <translation>Pas encore ici</translation>
    </message>
    <message>
        <source>Not yet: {names} and {number} more.</source>
        <translation>Pas encore&#xa0;: {names} et {number} de plus.</translation>
    </message>
    <message>
        <source>Not yet: {names}.</source>
        <translation>Pas encore&#xa0;: {names}.</translation>
    </message>
    <message>
        <source>Nothing came from any of them for {time}: your own connection may be broken.</source>
        <translation>Rien n’est venu d’aucun d’eux depuis {time}&#xa0;: votre propre connexion est peut-être coupée.</translation>
    </message>
    <message>
        <source>Nothing else on this device opens your messages any more.</source>
        <translation>Rien d’autre sur cet appareil n’ouvre plus vos messages.</translation>
    </message>
    <message>
        <source>Nothing found</source>
        <translation>Rien trouvé</translation>
    </message>
    <message>
        <source>Nothing goes out or comes in.</source>
        <translation>Rien ne sort ni n’entre.</translation>
    </message>
    <message>
        <source>Nothing is recorded now. Switched on, it begins at once: of all conversations, without texts and names, in {folder}.</source>
        <translation>Rien n’est noté pour le moment. Une fois activé, le relevé commence tout de suite&#xa0;: de toutes les conversations, sans textes ni noms, dans {folder}.</translation>
    </message>
    <message>
        <source>Nothing more was found, {back_to}.</source>
        <translation>Rien de plus n’a été trouvé&#xa0;: {back_to}.</translation>
    </message>
    <message>
        <source>Nothing of theirs has come here yet, so their keys are not known. Once it has, you can ask them to talk; before that, one of you needs the other&apos;s contact link.</source>
        <translation>Rien de cette personne n’est encore arrivé ici, donc ses clés ne sont pas connues. Ensuite, vous pourrez lui demander une conversation privée&#x202f;; d’ici là, l’une des deux personnes doit avoir le lien de contact de l’autre.</translation>
    </message>
    <message>
        <source>Nothing of theirs has come here yet, so their keys are not known. Try again later.</source>
        <translation>Rien de cette personne n’est encore arrivé ici, donc ses clés ne sont pas connues. Réessayez plus tard.</translation>
    </message>
    <message>
        <source>Nothing of what was recorded can be read.</source>
        <translation>Rien de ce qui a été noté ne peut être lu.</translation>
    </message>
    <message>
        <source>Nothing since the start.</source>
        <translation>Rien depuis le démarrage.</translation>
    </message>
    <message>
        <source>Nothing that could be found is missing.</source>
        <translation>Il ne manque rien de ce qui pouvait être retrouvé.</translation>
    </message>
    <message>
        <source>Nothing to do: all is acknowledged.</source>
        <translation>Rien à faire&#xa0;: tout est acquitté.</translation>
    </message>
    <message>
        <source>Nothing was refused or set aside.</source>
        <translation>Rien n’a été refusé ni mis de côté.</translation>
    </message>
    <message>
        <source>Nothing was removed. A backup is restored into a new profile; this one stays as it is.</source>
        <translation>Rien n’a été supprimé. Une sauvegarde est restaurée dans un nouveau profil&#x202f;; celui-ci reste tel quel.</translation>
    </message>
    <message>
        <source>Nothing was shared so far.</source>
        <translation>Rien n’a été partagé pour l’instant.</translation>
    </message>
    <message>
        <source>Nothing yet</source>
        <translation>Rien encore</translation>
    </message>
    <message>
        <source>Notices</source>
        <translation>Avis</translation>
    </message>
    <message>
        <source>Notifications</source>
        <translation>Notifications</translation>
    </message>
    <message>
        <source>Objects</source>
        <translation>Objets</translation>
    </message>
    <message numerus="yes">
        <source>Of %n files those go from this device that a connected member has just now. They can be fetched again only as long as somebody still has them.</source>
        <comment>%n file goes from this device if a connected member has it just now. It can be fetched again only as long as somebody still has it.</comment>
        <translation>
            <numerusform>%n fichier quitte cet appareil si un membre connecté l’a en ce moment. Il ne peut être récupéré que tant que quelqu’un l’a encore.</numerusform>
            <numerusform>Parmi %n fichiers, ceux qu’un membre connecté a en ce moment quittent cet appareil. Ils ne peuvent être récupérés que tant que quelqu’un les a encore.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Of %n larger files of others, {held} can be fetched again from members who hold them.</source>
        <comment>Of %n larger file of others, {held} can be fetched again from members who hold it.</comment>
        <translation>
            <numerusform>Sur %n plus grand fichier d’autres personnes, {held} peut être récupéré auprès de membres qui l’ont.</numerusform>
            <numerusform>Sur %n plus grands fichiers d’autres personnes, {held} peuvent être récupérés auprès de membres qui les ont.</numerusform>
        </translation>
    </message>
    <message>
        <source>Of all conversations, without texts and names, in {folder}.</source>
        <translation>De toutes les conversations, sans textes ni noms, dans {folder}.</translation>
    </message>
    <message>
        <source>Of all conversations, without texts and names, in {folder}. It was asked for on the command line, so it goes on until the program ends.</source>
        <translation>De toutes les conversations, sans textes ni noms, dans {folder}. Demandé sur la ligne de commande, cela dure jusqu’à la fin du programme.</translation>
    </message>
    <message>
        <source>Of an unknown sender</source>
        <translation>D’un expéditeur inconnu</translation>
    </message>
    <message>
        <source>Of each person the {most} newest reactions count.</source>
        <translation>De chaque personne, les {most} réactions les plus récentes comptent.</translation>
    </message>
    <message>
        <source>Of so many days the newest stays.</source>
        <translation>La plus récente d’autant de jours est gardée.</translation>
    </message>
    <message>
        <source>Of somebody unknown here</source>
        <translation>De quelqu’un d’inconnu ici</translation>
    </message>
    <message>
        <source>Of your messages, by when they were written. {held} of {all} are held by everyone.</source>
        <translation>De vos messages, selon l’heure où ils ont été écrits. {held} sur {all} sont détenus par tout le monde.</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>Désactivé</translation>
    </message>
    <message>
        <source>Off. A backup a day into a folder of your choice, the oldest deleted by itself.</source>
        <translation>Désactivé. Une sauvegarde par jour dans un dossier de votre choix, les plus anciennes supprimées d’elles-mêmes.</translation>
    </message>
    <message>
        <source>Offline</source>
        <translation>Hors ligne</translation>
    </message>
    <message>
        <source>Older log files kept</source>
        <translation>Anciens journaux gardés</translation>
    </message>
    <message>
        <source>Older messages are still being indexed: {share} % can be found.</source>
        <translation>Les messages plus anciens sont en cours d’indexation&#xa0;: {share}&#xa0;% peuvent être trouvés.</translation>
    </message>
    <message numerus="yes">
        <source>On %n pages one bit had changed; they are as they were.</source>
        <comment>On %n page one bit had changed; it is as it was.</comment>
        <translation>
            <numerusform>Sur %n page, un bit avait changé&#x202f;; elle est comme avant.</numerusform>
            <numerusform>Sur %n pages, un bit avait changé&#x202f;; elles sont comme avant.</numerusform>
        </translation>
    </message>
    <message>
        <source>On a message</source>
        <translation>Sur un message</translation>
    </message>
    <message>
        <source>On its way to the database, and other files</source>
        <translation>En route vers la base de données, et autres fichiers</translation>
    </message>
    <message>
        <source>On request</source>
        <translation>Sur demande</translation>
    </message>
    <message>
        <source>Once a day. The page of releases learns your network address. Nothing is downloaded.</source>
        <translation>Une fois par jour. La page des versions apprend votre adresse réseau. Rien n’est téléchargé.</translation>
    </message>
    <message>
        <source>One encrypted file with your identity, messages, files and settings.</source>
        <translation>Un fichier chiffré avec votre identité, vos messages, vos fichiers et vos réglages.</translation>
    </message>
    <message>
        <source>One encrypted file with your identity, messages, files and settings. Keep it on another device or disk: with it and its passphrase you go on anywhere.</source>
        <translation>Un fichier chiffré avec votre identité, vos messages, vos fichiers et vos réglages. Gardez-le sur un autre appareil ou disque&#xa0;: avec lui et sa phrase secrète, vous continuez n’importe où.</translation>
    </message>
    <message>
        <source>One every day…</source>
        <translation>Une chaque jour…</translation>
    </message>
    <message>
        <source>One file for whoever looks into it: what was recorded of deliveries in the last hour, counters, versions and settings. It holds no text, no names, no keys and no addresses. Nothing is sent anywhere; read it below before you hand it on.</source>
        <translation>Un seul fichier pour qui s’y penche&#xa0;: ce qui a été enregistré des livraisons de la dernière heure, compteurs, versions et réglages. Il ne contient ni textes, ni noms, ni clés, ni adresses. Rien n’est envoyé nulle part&#x202f;; lisez-le ci-dessous avant de le transmettre.</translation>
    </message>
    <message>
        <source>One is being made in {folder}: {percent} %</source>
        <translation>Une sauvegarde est en cours dans {folder}&#xa0;: {percent}&#xa0;%</translation>
    </message>
    <message>
        <source>One moment…</source>
        <translation>Un instant…</translation>
    </message>
    <message>
        <source>One of the two messages is not kept here any more.</source>
        <translation>L’un des deux messages n’est plus gardé ici.</translation>
    </message>
    <message>
        <source>One of you gives the other a contact link. Both must agree before you can write.</source>
        <translation>L’un de vous donne à l’autre un lien de contact. Vous devez être d’accord tous les deux avant de pouvoir écrire.</translation>
    </message>
    <message>
        <source>One peer</source>
        <translation>Un seul pair</translation>
    </message>
    <message>
        <source>One-to-one messages go out</source>
        <translation>Envoi des messages en tête-à-tête</translation>
    </message>
    <message>
        <source>Online</source>
        <translation>En ligne</translation>
    </message>
    <message>
        <source>Only admins</source>
        <translation>Les admins</translation>
    </message>
    <message>
        <source>Only admins let others in</source>
        <translation>Seuls les admins font entrer d’autres personnes</translation>
    </message>
    <message>
        <source>Only admins let others in.</source>
        <translation>Seuls les admins font entrer d’autres personnes.</translation>
    </message>
    <message>
        <source>Only admins of this group can do that.</source>
        <translation>Seuls les admins de ce groupe peuvent faire cela.</translation>
    </message>
    <message>
        <source>Only its author can change a message.</source>
        <translation>Seul son auteur peut modifier un message.</translation>
    </message>
    <message>
        <source>Only on this device so far.</source>
        <translation>Pour l’instant sur cet appareil seulement.</translation>
    </message>
    <message>
        <source>Only what comes after</source>
        <translation>Seulement la suite</translation>
    </message>
    <message>
        <source>Only you are here so far</source>
        <translation>Vous seul êtes ici pour l’instant</translation>
    </message>
    <message>
        <source>Only you see this name. Leave it empty to see the name they gave themselves.</source>
        <translation>Vous seul voyez ce nom. Laissez-le vide pour voir celui que la personne s’est donné.</translation>
    </message>
    <message>
        <source>Only {name} says so, whom you have known for less than a day.</source>
        <translation>Seul {name} le dit, que vous connaissez depuis moins d’un jour.</translation>
    </message>
    <message>
        <source>Only {name} was heard, and says so.</source>
        <translation>Seul {name} a été entendu, et le dit.</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>Ouvrir</translation>
    </message>
    <message>
        <source>Open Causerie</source>
        <translation>Ouvrir Causerie</translation>
    </message>
    <message>
        <source>Open Settings, Time &amp; language, Date &amp; time, and turn on “Set time automatically”.</source>
        <translation>Ouvrez Paramètres, Heure et langue, Date et heure, et activez «&#xa0;Régler l’heure automatiquement&#xa0;».</translation>
    </message>
    <message>
        <source>Open System Settings, General, Date &amp; Time, and turn on “Set time and date automatically”.</source>
        <translation>Ouvrez Réglages Système, Général, Date et heure, et activez «&#xa0;Régler la date et l’heure automatiquement&#xa0;».</translation>
    </message>
    <message>
        <source>Open anyway</source>
        <translation>Ouvrir quand même</translation>
    </message>
    <message>
        <source>Open channel</source>
        <translation>Canal ouvert</translation>
    </message>
    <message>
        <source>Open channel, not encrypted</source>
        <translation>Canal ouvert, non chiffré</translation>
    </message>
    <message>
        <source>Open the file</source>
        <translation>Ouvrir le fichier</translation>
    </message>
    <message>
        <source>Open the folder</source>
        <translation>Ouvrir le dossier</translation>
    </message>
    <message>
        <source>Open the page</source>
        <translation>Ouvrir la page</translation>
    </message>
    <message>
        <source>Open the settings file</source>
        <translation>Ouvrir le fichier de paramètres</translation>
    </message>
    <message>
        <source>Open this address?</source>
        <translation>Ouvrir cette adresse&#x202f;?</translation>
    </message>
    <message>
        <source>Open this file?</source>
        <translation>Ouvrir ce fichier&#x202f;?</translation>
    </message>
    <message>
        <source>Open {group}</source>
        <translation>Ouvrir {group}</translation>
    </message>
    <message>
        <source>Open {name}</source>
        <translation>Ouvrir {name}</translation>
    </message>
    <message>
        <source>Opening this backup takes {detail} MB of memory, which are not free on this device now. Close other programs and try again; nothing was changed.</source>
        <translation>Ouvrir cette sauvegarde demande {detail}&#xa0;Mo de mémoire, qui ne sont pas libres sur cet appareil en ce moment. Fermez d’autres programmes et réessayez&#x202f;; rien n’a été changé.</translation>
    </message>
    <message>
        <source>Opening this backup would take more memory or time than a backup of Causerie ever does.</source>
        <translation>Ouvrir cette sauvegarde prendrait plus de mémoire ou de temps qu’aucune sauvegarde de Causerie.</translation>
    </message>
    <message>
        <source>Or read their QR code from</source>
        <translation>Ou lisez son code QR depuis</translation>
    </message>
    <message>
        <source>Original size ({size})</source>
        <translation>Taille d’origine ({size})</translation>
    </message>
    <message>
        <source>Other emoji…</source>
        <translation>Autre emoji…</translation>
    </message>
    <message>
        <source>Others reach this device at {addresses}</source>
        <translation>Les autres joignent cet appareil à {addresses}</translation>
    </message>
    <message>
        <source>Pace</source>
        <translation>Rythme</translation>
    </message>
    <message>
        <source>Packing the database…</source>
        <translation>Compactage de la base de données…</translation>
    </message>
    <message>
        <source>Packing was stopped; nothing was changed.</source>
        <translation>Le compactage a été arrêté&#x202f;; rien n’a été changé.</translation>
    </message>
    <message>
        <source>Parquet, for Spark and tables</source>
        <translation>Parquet, pour Spark et les tableaux</translation>
    </message>
    <message>
        <source>Partition of 30 s</source>
        <translation>Coupure de 30 s</translation>
    </message>
    <message>
        <source>Passphrase</source>
        <translation>Phrase secrète</translation>
    </message>
    <message>
        <source>Passphrase and lock</source>
        <translation>Phrase secrète et verrouillage</translation>
    </message>
    <message>
        <source>Paste a channel link: it starts with {prefix}</source>
        <translation>Collez un lien de canal&#xa0;: il commence par {prefix}</translation>
    </message>
    <message>
        <source>Paste a contact link: it starts with {prefix}</source>
        <translation>Collez un lien de contact&#xa0;: il commence par {prefix}</translation>
    </message>
    <message>
        <source>Paste an invitation link: it starts with {prefix}</source>
        <translation>Collez un lien d’invitation&#xa0;: il commence par {prefix}</translation>
    </message>
    <message>
        <source>Paste it, if you were given one</source>
        <translation>Collez-le, si vous en avez reçu un</translation>
    </message>
    <message>
        <source>Paste the link they gave you, or a picture of its code</source>
        <translation>Collez le lien qu’on vous a donné, ou une image de son code</translation>
    </message>
    <message>
        <source>Paste the link you were given</source>
        <translation>Collez le lien qu’on vous a donné</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>Pause</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>En pause</translation>
    </message>
    <message>
        <source>Paused · {size}</source>
        <translation>En pause · {size}</translation>
    </message>
    <message>
        <source>Peer</source>
        <translation>Pair</translation>
    </message>
    <message>
        <source>Peer {name}</source>
        <translation>Pair {name}</translation>
    </message>
    <message>
        <source>Peer {peer}: {what}</source>
        <translation>Pair {peer}&#xa0;: {what}</translation>
    </message>
    <message>
        <source>Peers</source>
        <translation>Pairs</translation>
    </message>
    <message>
        <source>People</source>
        <translation>Personnes</translation>
    </message>
    <message>
        <source>People and body</source>
        <translation>Personnes et corps</translation>
    </message>
    <message>
        <source>People meet only within the same cluster.</source>
        <translation>On ne se rencontre qu’au sein d’un même cluster.</translation>
    </message>
    <message>
        <source>People to mention</source>
        <translation>Personnes à mentionner</translation>
    </message>
    <message>
        <source>People who are let in</source>
        <translation>Qui est admis</translation>
    </message>
    <message>
        <source>People you talk to see this name and picture.</source>
        <translation>Les personnes avec qui vous discutez voient ce nom et cette image.</translation>
    </message>
    <message>
        <source>People, addresses, lists</source>
        <translation>Personnes, adresses, listes</translation>
    </message>
    <message>
        <source>People, groups, messages, commands</source>
        <translation>Personnes, groupes, messages, commandes</translation>
    </message>
    <message>
        <source>Percent of all copies.</source>
        <translation>Pourcentage de toutes les copies.</translation>
    </message>
    <message>
        <source>Percent of what comes in.</source>
        <translation>Pourcentage de ce qui arrive.</translation>
    </message>
    <message>
        <source>Percent that later ones overtake.</source>
        <translation>Pourcentage que de plus récentes dépassent.</translation>
    </message>
    <message>
        <source>Person</source>
        <translation>Personne</translation>
    </message>
    <message>
        <source>Person: {name}</source>
        <translation>Personne&#xa0;: {name}</translation>
    </message>
    <message>
        <source>Person: {name}, {where}</source>
        <translation>Personne&#xa0;: {name}, {where}</translation>
    </message>
    <message>
        <source>Photo</source>
        <translation>Photo</translation>
    </message>
    <message>
        <source>Photo from {name}, {time}</source>
        <translation>Photo de {name}, {time}</translation>
    </message>
    <message>
        <source>Pick one on the left, or start another.</source>
        <translation>Prenez-en une à gauche, ou commencez-en une autre.</translation>
    </message>
    <message>
        <source>Picture (PNG)…</source>
        <translation>Image (PNG)…</translation>
    </message>
    <message>
        <source>Picture after</source>
        <translation>Image suivante</translation>
    </message>
    <message>
        <source>Picture before</source>
        <translation>Image précédente</translation>
    </message>
    <message>
        <source>Picture {name}, {words}</source>
        <translation>Image {name}, {words}</translation>
    </message>
    <message>
        <source>Pictures (*.png *.jpg *.jpeg)</source>
        <translation>Images (*.png *.jpg *.jpeg)</translation>
    </message>
    <message>
        <source>Pictures and files</source>
        <translation>Images et fichiers</translation>
    </message>
    <message>
        <source>Picture…</source>
        <translation>Image…</translation>
    </message>
    <message>
        <source>Pin to the top</source>
        <translation>Épingler en haut</translation>
    </message>
    <message>
        <source>Place and time stay in it</source>
        <translation>Le lieu et l’heure y restent</translation>
    </message>
    <message>
        <source>Place in the order: {number}</source>
        <translation>Place dans l’ordre&#xa0;: {number}</translation>
    </message>
    <message>
        <source>Place, camera and other details are removed in any case.</source>
        <translation>Lieu, appareil photo et autres détails sont retirés dans tous les cas.</translation>
    </message>
    <message>
        <source>Plain text</source>
        <translation>Texte brut</translation>
    </message>
    <message>
        <source>Present passphrase</source>
        <translation>Phrase secrète actuelle</translation>
    </message>
    <message>
        <source>Previous area</source>
        <translation>Zone précédente</translation>
    </message>
    <message>
        <source>Privacy</source>
        <translation>Confidentialité</translation>
    </message>
    <message>
        <source>Profile</source>
        <translation>Profil</translation>
    </message>
    <message>
        <source>Profile: {name}</source>
        <translation>Profil&#xa0;: {name}</translation>
    </message>
    <message>
        <source>Program</source>
        <translation>Programme</translation>
    </message>
    <message>
        <source>Protocols</source>
        <translation>Protocoles</translation>
    </message>
    <message>
        <source>Put the clock ahead</source>
        <translation>Avancer l’horloge</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>Quitter</translation>
    </message>
    <message>
        <source>Quit Causerie?</source>
        <translation>Quitter Causerie&#x202f;?</translation>
    </message>
    <message>
        <source>Quit while messages wait?</source>
        <translation>Quitter alors que des messages attendent&#x202f;?</translation>
    </message>
    <message>
        <source>React</source>
        <translation>Réagir</translation>
    </message>
    <message>
        <source>Read the code that is on the screen now</source>
        <translation>Lire le code qui est maintenant à l’écran</translation>
    </message>
    <message>
        <source>Read what was copied: a picture of the code, or a link</source>
        <translation>Lire ce qui a été copié&#xa0;: une image du code, ou un lien</translation>
    </message>
    <message>
        <source>Received</source>
        <translation>Reçu</translation>
    </message>
    <message>
        <source>Received per second</source>
        <translation>Reçu par seconde</translation>
    </message>
    <message>
        <source>Received, sent</source>
        <translation>Reçu, envoyé</translation>
    </message>
    <message>
        <source>Record</source>
        <translation>Noter</translation>
    </message>
    <message>
        <source>Record deliveries</source>
        <translation>Noter les remises</translation>
    </message>
    <message>
        <source>Record deliveries?</source>
        <translation>Noter les remises&#x202f;?</translation>
    </message>
    <message>
        <source>Record deliveries…</source>
        <translation>Noter les remises…</translation>
    </message>
    <message>
        <source>Recorded deliveries</source>
        <translation>Livraisons enregistrées</translation>
    </message>
    <message>
        <source>Recording</source>
        <translation>Relevés</translation>
    </message>
    <message>
        <source>Recording settings</source>
        <translation>Réglages des relevés</translation>
    </message>
    <message>
        <source>Records can be compared if all who made them have the same key.</source>
        <translation>Des relevés peuvent être comparés si tous ceux qui les ont faits ont la même clé.</translation>
    </message>
    <message>
        <source>Records can be compared if all who made them have the same key:</source>
        <translation>Des relevés peuvent être comparés si tous ceux qui les ont faits ont la même clé&#xa0;:</translation>
    </message>
    <message>
        <source>Records can be compared if all who made them have this key. Whoever has it can find out whose the pseudonyms are: give it to your test group only, for “key” under [delivery] in their settings file.</source>
        <translation>Des relevés peuvent être comparés si tous ceux qui les ont faits ont cette clé. Quiconque l’a peut découvrir à qui sont les pseudonymes&#xa0;: ne la donnez qu’à votre groupe de test, pour «&#xa0;key&#xa0;» sous [delivery] dans leur fichier de paramètres.</translation>
    </message>
    <message>
        <source>Records of MVDS</source>
        <translation>Enregistrements de MVDS</translation>
    </message>
    <message>
        <source>Records of MVDS: what is still to be offered, requested or sent.</source>
        <translation>Enregistrements de MVDS&#xa0;: ce qui reste à proposer, à demander ou à envoyer.</translation>
    </message>
    <message>
        <source>Refusals</source>
        <translation>Refus</translation>
    </message>
    <message>
        <source>Refused or set aside here</source>
        <translation>Refusé ou mis de côté ici</translation>
    </message>
    <message>
        <source>Refused: {why}</source>
        <translation>Refusée&#xa0;: {why}</translation>
    </message>
    <message>
        <source>Remind me</source>
        <translation>Me le rappeler</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Retirer</translation>
    </message>
    <message>
        <source>Remove and end the link</source>
        <translation>Retirer et mettre fin au lien</translation>
    </message>
    <message>
        <source>Remove from the group…</source>
        <translation>Retirer du groupe…</translation>
    </message>
    <message>
        <source>Remove from the list</source>
        <translation>Retirer de la liste</translation>
    </message>
    <message>
        <source>Remove picture</source>
        <translation>Retirer l’image</translation>
    </message>
    <message>
        <source>Remove the passphrase</source>
        <translation>Supprimer la phrase secrète</translation>
    </message>
    <message>
        <source>Remove {name} and end the link?</source>
        <translation>Retirer {name} et mettre fin au lien&#x202f;?</translation>
    </message>
    <message>
        <source>Remove {name} from {group}?</source>
        <translation>Retirer {name} de {group}&#x202f;?</translation>
    </message>
    <message>
        <source>Remove {name}?</source>
        <translation>Retirer {name}&#x202f;?</translation>
    </message>
    <message>
        <source>Remove…</source>
        <translation>Retirer…</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>Renommer</translation>
    </message>
    <message>
        <source>Rename {name}</source>
        <translation>Renommer {name}</translation>
    </message>
    <message>
        <source>Rename…</source>
        <translation>Renommer…</translation>
    </message>
    <message>
        <source>Reordering</source>
        <translation>Désordre</translation>
    </message>
    <message>
        <source>Repair the database</source>
        <translation>Réparer la base de données</translation>
    </message>
    <message>
        <source>Repaired: a member sent it again</source>
        <translation>Réparé&#xa0;: un membre l’a renvoyé</translation>
    </message>
    <message>
        <source>Repaired: {name} sent it again</source>
        <translation>Réparé&#xa0;: {name} l’a renvoyé</translation>
    </message>
    <message>
        <source>Repairing it puts what can be read in its place, keeps the damaged one beside it, and asks others for what is missing.</source>
        <translation>La réparer met à sa place ce qui peut être lu, garde à côté la base endommagée et demande aux autres ce qui manque.</translation>
    </message>
    <message>
        <source>Repairs per minute</source>
        <translation>Réparations par minute</translation>
    </message>
    <message>
        <source>Reply</source>
        <translation>Répondre</translation>
    </message>
    <message>
        <source>Reply to yourself</source>
        <translation>Répondre à vous-même</translation>
    </message>
    <message>
        <source>Reply to {name}</source>
        <translation>Répondre à {name}</translation>
    </message>
    <message>
        <source>Report a problem</source>
        <translation>Signaler un problème</translation>
    </message>
    <message>
        <source>Report a problem…</source>
        <translation>Signaler un problème…</translation>
    </message>
    <message>
        <source>Request withdrawn</source>
        <translation>Demande retirée</translation>
    </message>
    <message>
        <source>Resend</source>
        <translation>Renvoyer</translation>
    </message>
    <message>
        <source>Restart now</source>
        <translation>Redémarrer maintenant</translation>
    </message>
    <message>
        <source>Restore</source>
        <translation>Restaurer</translation>
    </message>
    <message>
        <source>Restore a backup</source>
        <translation>Restaurer une sauvegarde</translation>
    </message>
    <message>
        <source>Restored</source>
        <translation>Restauré</translation>
    </message>
    <message>
        <source>Revoke</source>
        <translation>Révoquer</translation>
    </message>
    <message>
        <source>Room for files</source>
        <translation>Place pour les fichiers</translation>
    </message>
    <message>
        <source>Room for records</source>
        <translation>Place pour les relevés</translation>
    </message>
    <message>
        <source>Room for them</source>
        <translation>Place pour eux</translation>
    </message>
    <message>
        <source>Round trip</source>
        <translation>Aller-retour</translation>
    </message>
    <message>
        <source>SOCKS5 proxy for all connections</source>
        <translation>Proxy SOCKS5 pour toutes les connexions</translation>
    </message>
    <message>
        <source>Safety number with {name}</source>
        <translation>Numéro de sécurité avec {name}</translation>
    </message>
    <message>
        <source>Safety number: {digits}</source>
        <translation>Numéro de sécurité&#xa0;: {digits}</translation>
    </message>
    <message>
        <source>Safety number…</source>
        <translation>Numéro de sécurité…</translation>
    </message>
    <message>
        <source>Said to be from {name} by whoever names it; nothing proves that</source>
        <translation>Attribué à {name} par ceux qui le nomment&#x202f;; rien ne le prouve</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>Enregistrer</translation>
    </message>
    <message>
        <source>Save a report</source>
        <translation>Enregistrer un rapport</translation>
    </message>
    <message>
        <source>Save a report…</source>
        <translation>Enregistrer un rapport…</translation>
    </message>
    <message>
        <source>Save as</source>
        <translation>Enregistrer sous</translation>
    </message>
    <message>
        <source>Save as…</source>
        <translation>Enregistrer sous…</translation>
    </message>
    <message>
        <source>Saved as {name}</source>
        <translation>Enregistré sous {name}</translation>
    </message>
    <message>
        <source>Saved as {name}.</source>
        <translation>Enregistré sous {name}.</translation>
    </message>
    <message>
        <source>Saved in {path}. It holds no messages.</source>
        <translation>Enregistré dans {path}. Il ne contient aucun message.</translation>
    </message>
    <message>
        <source>Saved on this device</source>
        <translation>Enregistré sur cet appareil</translation>
    </message>
    <message>
        <source>Saved on this device, waiting for the network.</source>
        <translation>Enregistré sur cet appareil, en attente du réseau.</translation>
    </message>
    <message>
        <source>Saved on this device. It waits for the network and survives a restart.</source>
        <translation>Enregistré sur cet appareil. Il attend le réseau et survit à un redémarrage.</translation>
    </message>
    <message>
        <source>Saved: {file}</source>
        <translation>Enregistré&#xa0;: {file}</translation>
    </message>
    <message>
        <source>Save…</source>
        <translation>Enregistrer…</translation>
    </message>
    <message>
        <source>Say first whether you know this {name}</source>
        <translation>Dites d’abord si vous connaissez cette personne nommée {name}</translation>
    </message>
    <message>
        <source>Score</source>
        <translation>Score</translation>
    </message>
    <message>
        <source>Screen</source>
        <translation>Écran</translation>
    </message>
    <message>
        <source>Sealed by Olm with a key of its own; nothing came back by Olm yet</source>
        <translation>Scellé par Olm avec une clé à lui seul&#x202f;; rien n’est encore revenu par Olm</translation>
    </message>
    <message>
        <source>Sealed by Olm with a key of its own; you both speak it since {time}</source>
        <translation>Scellé par Olm avec une clé à lui seul&#x202f;; vous l’utilisez tous deux depuis le {time}</translation>
    </message>
    <message>
        <source>Sealed for the two of you, but not forward secret yet: they have an earlier version of Causerie, or were not heard since both of you have this one.</source>
        <translation>Scellé pour vous deux, mais sans confidentialité persistante pour l’instant&#x202f;: cette personne a une version antérieure de Causerie, ou n’a pas donné signe de vie depuis que vous avez tous deux celle-ci.</translation>
    </message>
    <message>
        <source>Sealed; the settings say how much.</source>
        <translation>Scellé&#x202f;; les réglages disent combien.</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>Rechercher</translation>
    </message>
    <message>
        <source>Search emoji</source>
        <translation>Rechercher un emoji</translation>
    </message>
    <message>
        <source>Search emoji by name</source>
        <translation>Rechercher un emoji par son nom</translation>
    </message>
    <message>
        <source>Search everything</source>
        <translation>Rechercher partout</translation>
    </message>
    <message>
        <source>Search messages for “{text}”</source>
        <translation>Rechercher «&#xa0;{text}&#xa0;» dans les messages</translation>
    </message>
    <message>
        <source>Search people and groups</source>
        <translation>Rechercher des personnes et des groupes</translation>
    </message>
    <message>
        <source>Search people and groups by name</source>
        <translation>Rechercher des personnes et des groupes par leur nom</translation>
    </message>
    <message>
        <source>Search people, groups, messages and commands</source>
        <translation>Rechercher des personnes, des groupes, des messages et des commandes</translation>
    </message>
    <message>
        <source>Search settings</source>
        <translation>Rechercher un paramètre</translation>
    </message>
    <message>
        <source>Search the list</source>
        <translation>Rechercher dans la liste</translation>
    </message>
    <message>
        <source>Search the list of conversations</source>
        <translation>Rechercher dans la liste des conversations</translation>
    </message>
    <message>
        <source>Search this conversation</source>
        <translation>Rechercher dans cette conversation</translation>
    </message>
    <message>
        <source>Search this conversation (Ctrl+F)</source>
        <translation>Rechercher dans cette conversation (Ctrl+F)</translation>
    </message>
    <message>
        <source>Sections</source>
        <translation>Sections</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>Envoyer</translation>
    </message>
    <message>
        <source>Send (Enter)</source>
        <translation>Envoyer (Entrée)</translation>
    </message>
    <message>
        <source>Send a picture or a file</source>
        <translation>Envoyer une image ou un fichier</translation>
    </message>
    <message>
        <source>Send somebody an invitation, or let them scan its code.</source>
        <translation>Envoyez une invitation à quelqu’un, ou faites scanner son code.</translation>
    </message>
    <message>
        <source>Sender</source>
        <translation>Expéditeur</translation>
    </message>
    <message>
        <source>Sender not known</source>
        <translation>Expéditeur inconnu</translation>
    </message>
    <message>
        <source>Sent</source>
        <translation>Envoyé</translation>
    </message>
    <message>
        <source>Sent again for a member who lacked it</source>
        <translation>Renvoyé à un membre à qui il manquait</translation>
    </message>
    <message>
        <source>Sent again, as you asked</source>
        <translation>Renvoyé à votre demande</translation>
    </message>
    <message>
        <source>Sent again, unless somebody acknowledges it</source>
        <translation>Renvoyé, sauf si quelqu’un en accuse réception</translation>
    </message>
    <message>
        <source>Sent and received since the start</source>
        <translation>Envoyé et reçu depuis le démarrage</translation>
    </message>
    <message>
        <source>Sent per second</source>
        <translation>Envoyé par seconde</translation>
    </message>
    <message>
        <source>Sent with a newer version of Causerie. Update to see it.</source>
        <translation>Envoyé avec une version plus récente de Causerie. Mettez à jour pour le voir.</translation>
    </message>
    <message>
        <source>Sent {sent}, received {received}</source>
        <translation>Envoyé {sent}, reçu {received}</translation>
    </message>
    <message>
        <source>Sent. A relay or a service took it; nobody is known to hold it yet.</source>
        <translation>Envoyé. Un relais ou un service l’a pris&#x202f;; on ne sait pas encore si quelqu’un le détient.</translation>
    </message>
    <message>
        <source>Sent. Nobody is known to hold it yet.</source>
        <translation>Envoyé. On ne sait pas encore si quelqu’un le détient.</translation>
    </message>
    <message>
        <source>Sent. Their device has not said yet that it has it.</source>
        <translation>Envoyé. L’autre appareil n’a pas encore dit qu’il l’a.</translation>
    </message>
    <message>
        <source>Sent; why is not recorded</source>
        <translation>Envoyé&#x202f;; pourquoi n’a pas été enregistré</translation>
    </message>
    <message>
        <source>Service nodes</source>
        <translation>Nœuds de service</translation>
    </message>
    <message>
        <source>Service nodes, one address on each line</source>
        <translation>Nœuds de service, une adresse par ligne</translation>
    </message>
    <message>
        <source>Set</source>
        <translation>Définir</translation>
    </message>
    <message>
        <source>Set a passphrase</source>
        <translation>Définir une phrase secrète</translation>
    </message>
    <message>
        <source>Set label</source>
        <translation>Définir l’étiquette</translation>
    </message>
    <message>
        <source>Set up…</source>
        <translation>Régler…</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Paramètres</translation>
    </message>
    <message>
        <source>Settings file</source>
        <translation>Fichier de paramètres</translation>
    </message>
    <message>
        <source>Set…</source>
        <translation>Définir…</translation>
    </message>
    <message>
        <source>Shard</source>
        <translation>Shard</translation>
    </message>
    <message>
        <source>Shards of the cluster</source>
        <translation>Shards du cluster</translation>
    </message>
    <message>
        <source>Shared key</source>
        <translation>Clé partagée</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>Afficher</translation>
    </message>
    <message>
        <source>Show all</source>
        <translation>Tout afficher</translation>
    </message>
    <message>
        <source>Show as graph</source>
        <translation>Afficher en graphe</translation>
    </message>
    <message>
        <source>Show as picture</source>
        <translation>Afficher en image</translation>
    </message>
    <message>
        <source>Show as table</source>
        <translation>Afficher en tableau</translation>
    </message>
    <message>
        <source>Show fewer</source>
        <translation>Afficher moins</translation>
    </message>
    <message>
        <source>Show it in the conversation</source>
        <translation>Le montrer dans la conversation</translation>
    </message>
    <message>
        <source>Show more</source>
        <translation>Afficher plus</translation>
    </message>
    <message>
        <source>Show text in notifications</source>
        <translation>Afficher le texte dans les notifications</translation>
    </message>
    <message>
        <source>Show their messages</source>
        <translation>Afficher ses messages</translation>
    </message>
    <message>
        <source>Shown</source>
        <translation>Affiché</translation>
    </message>
    <message>
        <source>Shown below what is missing</source>
        <translation>Affiché sous ce qui manque</translation>
    </message>
    <message>
        <source>Show…</source>
        <translation>Afficher…</translation>
    </message>
    <message>
        <source>Signed</source>
        <translation>Signé</translation>
    </message>
    <message>
        <source>Signed for group key {number}</source>
        <translation>Signé pour la clé de groupe {number}</translation>
    </message>
    <message>
        <source>Signed {time}</source>
        <translation>Signé&#xa0;: {time}</translation>
    </message>
    <message>
        <source>Signed, and sealed by HPKE: not forward secret</source>
        <translation>Signé, et scellé par HPKE&#xa0;: sans confidentialité persistante</translation>
    </message>
    <message>
        <source>Signed, by its author&apos;s clock</source>
        <translation>Signé, à l’horloge de son auteur</translation>
    </message>
    <message>
        <source>Since</source>
        <translation>Depuis</translation>
    </message>
    <message>
        <source>Since {time} what comes in their name is sealed the old way, as by a version of Causerie without Olm. It is not read: a thief of their keys could write like that. Ask them by another way whether it is them, and to install the present version.</source>
        <translation>Depuis le {time}, ce qui vient en son nom est scellé à l’ancienne, comme par une version de Causerie sans Olm. Ce n’est pas lu&#xa0;: un voleur de ses clés pourrait écrire ainsi. Demandez-lui par un autre moyen si c’est bien cette personne qui écrit, et d’installer la version actuelle.</translation>
    </message>
    <message>
        <source>Site: {host}</source>
        <translation>Site&#xa0;: {host}</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Taille</translation>
    </message>
    <message>
        <source>Size of a log file</source>
        <translation>Taille d’un journal</translation>
    </message>
    <message>
        <source>Skin tone</source>
        <translation>Teinte de peau</translation>
    </message>
    <message>
        <source>Skin tone: {tone}</source>
        <translation>Teinte de peau&#xa0;: {tone}</translation>
    </message>
    <message>
        <source>Slow, with nothing at all in tunnels; three minutes.</source>
        <translation>Lent, et plus rien dans les tunnels&#x202f;; trois minutes.</translation>
    </message>
    <message>
        <source>Smaller</source>
        <translation>Réduire</translation>
    </message>
    <message numerus="yes">
        <source>So are %n more.</source>
        <comment>So is %n more.</comment>
        <translation>
            <numerusform>De même pour %n autre.</numerusform>
            <numerusform>De même pour %n autres.</numerusform>
        </translation>
    </message>
    <message>
        <source>So far: {what}</source>
        <translation>Jusqu’ici&#xa0;: {what}</translation>
    </message>
    <message>
        <source>So many devices can connect to this one from one address.</source>
        <translation>Autant d’appareils peuvent se connecter à celui-ci depuis une même adresse.</translation>
    </message>
    <message>
        <source>So that members of your conversations can fetch what they missed. 0: keep none.</source>
        <translation>Pour que les membres de vos conversations puissent récupérer ce qu’ils ont manqué. 0&#xa0;: n’en garder aucun.</translation>
    </message>
    <message>
        <source>Some members hold it, or may hold it. The number counts who surely does.</source>
        <translation>Certains membres le détiennent, ou le détiennent peut-être. Le nombre compte ceux qui le détiennent à coup sûr.</translation>
    </message>
    <message>
        <source>Somebody</source>
        <translation>Quelqu’un</translation>
    </message>
    <message>
        <source>Somebody else came in with it before you. Ask {name} for one of your own, and tell them: if it was meant for you alone, the link went astray.</source>
        <translation>Quelqu’un d’autre est entré avec elle avant vous. Demandez à {name} une invitation rien que pour vous, et dites-le&#xa0;: si elle vous était destinée, le lien s’est égaré.</translation>
    </message>
    <message>
        <source>Somebody else here bears the same name. This is the one whose fingerprint is {fingerprint}.</source>
        <translation>Quelqu’un d’autre ici porte le même nom. Il s’agit de la personne dont l’empreinte est {fingerprint}.</translation>
    </message>
    <message>
        <source>Somebody in this group bears the name, with another key. It may be another person, a new device of theirs, or somebody who pretends.</source>
        <translation>Quelqu’un dans ce groupe porte ce nom, avec une autre clé. C’est peut-être une autre personne, son nouvel appareil, ou quelqu’un qui se fait passer pour elle.</translation>
    </message>
    <message>
        <source>Somebody who left</source>
        <translation>Une personne partie</translation>
    </message>
    <message>
        <source>Something is missing in this channel link. Ask for a new one.</source>
        <translation>Il manque quelque chose dans ce lien de canal. Demandez-en un nouveau.</translation>
    </message>
    <message>
        <source>Something is missing in this contact link. Ask for a new one.</source>
        <translation>Il manque quelque chose dans ce lien de contact. Demandez-en un nouveau.</translation>
    </message>
    <message>
        <source>Something is missing in this invitation. Ask for a new one.</source>
        <translation>Il manque quelque chose dans cette invitation. Demandez-en une nouvelle.</translation>
    </message>
    <message>
        <source>Something went wrong that should not. Please send a report to its makers.</source>
        <translation>Quelque chose s’est mal passé, ce qui ne devrait pas arriver. Merci d’envoyer un rapport à ses auteurs.</translation>
    </message>
    <message>
        <source>Start</source>
        <translation>Démarrer</translation>
    </message>
    <message>
        <source>Start a conversation</source>
        <translation>Commencer une conversation</translation>
    </message>
    <message>
        <source>Start with the session</source>
        <translation>Démarrer avec la session</translation>
    </message>
    <message>
        <source>Start with these numbers</source>
        <translation>Démarrer avec ces nombres</translation>
    </message>
    <message>
        <source>Start: {name}</source>
        <translation>Démarrer&#xa0;: {name}</translation>
    </message>
    <message>
        <source>State</source>
        <translation>État</translation>
    </message>
    <message>
        <source>Status</source>
        <translation>État</translation>
    </message>
    <message>
        <source>Step {number} of {steps}</source>
        <translation>Étape {number} sur {steps}</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Arrêter</translation>
    </message>
    <message>
        <source>Stop all faults</source>
        <translation>Arrêter toutes les pannes</translation>
    </message>
    <message>
        <source>Stop and quit</source>
        <translation>Arrêter et quitter</translation>
    </message>
    <message>
        <source>Stop asking</source>
        <translation>Ne plus demander</translation>
    </message>
    <message>
        <source>Stop being an admin</source>
        <translation>Ne plus être admin</translation>
    </message>
    <message>
        <source>Stop being an admin?</source>
        <translation>Ne plus être admin&#x202f;?</translation>
    </message>
    <message>
        <source>Stop being an admin…</source>
        <translation>Ne plus être admin…</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>Arrêté</translation>
    </message>
    <message>
        <source>Stopped fetching.</source>
        <translation>Récupération arrêtée.</translation>
    </message>
    <message>
        <source>Stopped. Nothing was left behind.</source>
        <translation>Arrêté. Rien n’a été laissé.</translation>
    </message>
    <message numerus="yes">
        <source>Stopped. {number} new messages stay here</source>
        <comment>Stopped. {number} new message stays here</comment>
        <translation>
            <numerusform>Arrêté. {number} nouveau message reste ici</numerusform>
            <numerusform>Arrêté. {number} nouveaux messages restent ici</numerusform>
        </translation>
    </message>
    <message>
        <source>Store</source>
        <translation>Store</translation>
    </message>
    <message>
        <source>Store {number} of {all}: {words}</source>
        <translation>Store {number} sur {all}&#xa0;: {words}</translation>
    </message>
    <message>
        <source>Store {version}</source>
        <translation>Store {version}</translation>
    </message>
    <message>
        <source>Store {version}, also {others}</source>
        <translation>Store {version}, aussi {others}</translation>
    </message>
    <message>
        <source>Store {words}</source>
        <translation>Store {words}</translation>
    </message>
    <message>
        <source>Stores</source>
        <translation>Stores</translation>
    </message>
    <message>
        <source>Stores asked: without it {lack}, without an answer {silent}</source>
        <translation>Stores interrogés&#xa0;: sans lui {lack}, sans réponse {silent}</translation>
    </message>
    <message>
        <source>Stores keep sealed messages for members who are away. They cannot read them.</source>
        <translation>Les Stores gardent des messages scellés pour les membres absents. Ils ne peuvent pas les lire.</translation>
    </message>
    <message>
        <source>Stores keep sealed messages for those who are away. They cannot read them, and what they answer is checked here. Those that are on are asked in this order.</source>
        <translation>Les Stores gardent des messages scellés pour ceux qui sont absents. Ils ne peuvent pas les lire, et ce qu’ils répondent est vérifié ici. Ceux qui sont activés sont interrogés dans cet ordre.</translation>
    </message>
    <message>
        <source>Stores keep sealed messages while someone is away. They cannot read them.</source>
        <translation>Les Stores gardent des messages scellés quand quelqu’un est absent. Ils ne peuvent pas les lire.</translation>
    </message>
    <message>
        <source>Stores…</source>
        <translation>Stores…</translation>
    </message>
    <message>
        <source>Strong</source>
        <translation>Forte</translation>
    </message>
    <message>
        <source>Suggestions</source>
        <translation>Suggestions</translation>
    </message>
    <message>
        <source>Switch off</source>
        <translation>Désactiver</translation>
    </message>
    <message>
        <source>Switch off (on {until})</source>
        <translation>Désactiver (actif {until})</translation>
    </message>
    <message>
        <source>Symbols</source>
        <translation>Symboles</translation>
    </message>
    <message>
        <source>TLS failed ({detail})</source>
        <translation>TLS a échoué ({detail})</translation>
    </message>
    <message>
        <source>TOY-CHAT</source>
        <translation>TOY-CHAT</translation>
    </message>
    <message>
        <source>Table (CSV)…</source>
        <translation>Tableau (CSV)…</translation>
    </message>
    <message>
        <source>Take out of the archive</source>
        <translation>Sortir des archives</translation>
    </message>
    <message>
        <source>Tell others when I am typing</source>
        <translation>Dire aux autres quand j’écris</translation>
    </message>
    <message>
        <source>Tell people when I am online</source>
        <translation>Dire à mes contacts quand je suis en ligne</translation>
    </message>
    <message>
        <source>Tell the desktop about new messages.</source>
        <translation>Signaler les nouveaux messages au bureau.</translation>
    </message>
    <message>
        <source>Tell the desktop when a message there mentions you.</source>
        <translation>Signaler au bureau quand un message y parle de vous.</translation>
    </message>
    <message>
        <source>Test</source>
        <translation>Tester</translation>
    </message>
    <message>
        <source>Test all</source>
        <translation>Tout tester</translation>
    </message>
    <message>
        <source>Test {address}</source>
        <translation>Tester {address}</translation>
    </message>
    <message>
        <source>Test: cannot be used. {reason}</source>
        <translation>Test&#xa0;: inutilisable. {reason}</translation>
    </message>
    <message>
        <source>Test: works. {found}.</source>
        <translation>Test&#xa0;: fonctionne. {found}.</translation>
    </message>
    <message>
        <source>Testing…</source>
        <translation>Test en cours…</translation>
    </message>
    <message>
        <source>Text size</source>
        <translation>Taille du texte</translation>
    </message>
    <message>
        <source>Texts {texts}, files {files}, evidence and index {evidence}.</source>
        <translation>Textes {texts}, fichiers {files}, preuves et index {evidence}.</translation>
    </message>
    <message>
        <source>That got their place here, yours among them.</source>
        <translation>Ceux qui ont trouvé leur place ici, les vôtres compris.</translation>
    </message>
    <message>
        <source>That is far more than a message can hold ({most} kB). Nothing was pasted; it is still in the clipboard.</source>
        <translation>C’est bien plus que ce qu’un message peut contenir ({most}&#xa0;Ko). Rien n’a été collé&#x202f;; c’est toujours dans le presse-papiers.</translation>
    </message>
    <message>
        <source>That is no id of a peer.</source>
        <translation>Ce n’est pas l’identifiant d’un pair.</translation>
    </message>
    <message>
        <source>That is very much: only its first words were searched for.</source>
        <translation>C’est vraiment beaucoup&#xa0;: seuls les premiers mots ont été cherchés.</translation>
    </message>
    <message>
        <source>The announcement is in a form of a later version ({detail}). Look at the page of releases.</source>
        <translation>L’annonce a la forme d’une version ultérieure ({detail}). Consultez la page des versions.</translation>
    </message>
    <message>
        <source>The announcement is not signed by the makers of Causerie, so it does not count.</source>
        <translation>L’annonce n’est pas signée par les auteurs de Causerie, elle ne compte donc pas.</translation>
    </message>
    <message>
        <source>The announcement is older than one that was here before, so it does not count.</source>
        <translation>L’annonce est plus ancienne qu’une autre déjà reçue ici, elle ne compte donc pas.</translation>
    </message>
    <message>
        <source>The backup is complete and was checked: {size} in {path}.</source>
        <translation>La sauvegarde est complète et vérifiée&#xa0;: {size} dans {path}.</translation>
    </message>
    <message numerus="yes">
        <source>The backup was checked: {size} in {path}. %n parts of files are damaged on this device and not in it.</source>
        <comment>The backup was checked: {size} in {path}. %n part of a file is damaged on this device and not in it.</comment>
        <translation>
            <numerusform>La sauvegarde est vérifiée&#xa0;: {size} dans {path}. %n partie de fichier est endommagée sur cet appareil et n’y est pas.</numerusform>
            <numerusform>La sauvegarde est vérifiée&#xa0;: {size} dans {path}. %n parties de fichiers sont endommagées sur cet appareil et n’y sont pas.</numerusform>
        </translation>
    </message>
    <message>
        <source>The beads</source>
        <translation>Les perles</translation>
    </message>
    <message>
        <source>The chosen peer</source>
        <translation>Le pair choisi</translation>
    </message>
    <message>
        <source>The conversation of that notification is not here any more.</source>
        <translation>La conversation de cette notification n’est plus ici.</translation>
    </message>
    <message>
        <source>The damaged database is kept as {name}, with a report of this beside it.</source>
        <translation>La base endommagée est gardée sous le nom {name}, avec un rapport à côté.</translation>
    </message>
    <message>
        <source>The database cannot be decrypted: either its key is another one, or the file was damaged.</source>
        <translation>La base de données ne peut pas être déchiffrée&#xa0;: soit sa clé est une autre, soit le fichier a été endommagé.</translation>
    </message>
    <message>
        <source>The database file cannot be opened.</source>
        <translation>Le fichier de la base de données ne peut pas être ouvert.</translation>
    </message>
    <message>
        <source>The database is being repaired</source>
        <translation>Réparation de la base de données</translation>
    </message>
    <message>
        <source>The database is damaged.</source>
        <translation>La base de données est endommagée.</translation>
    </message>
    <message>
        <source>The database is damaged: a part of it cannot be read. Nothing is written over it.</source>
        <translation>La base de données est endommagée&#xa0;: une partie ne peut pas être lue. Rien n’est écrit par-dessus.</translation>
    </message>
    <message>
        <source>The database is packed. For a while that takes up to {room} more on the disk. What you send or get meanwhile waits, and is saved afterwards.</source>
        <translation>La base de données est compactée. Pendant ce temps, cela prend jusqu’à {room} de plus sur le disque. Ce que vous envoyez ou recevez entre-temps attend et est enregistré ensuite.</translation>
    </message>
    <message>
        <source>The database may only be read.</source>
        <translation>La base de données ne peut qu’être lue.</translation>
    </message>
    <message>
        <source>The database of this profile is gone or empty, though the profile was used.</source>
        <translation>La base de données de ce profil a disparu ou est vide, alors que le profil a servi.</translation>
    </message>
    <message>
        <source>The database was repaired</source>
        <translation>La base de données a été réparée</translation>
    </message>
    <message>
        <source>The default is used instead.</source>
        <translation>La valeur par défaut est utilisée à la place.</translation>
    </message>
    <message>
        <source>The disk is full; nothing was saved.</source>
        <translation>Le disque est plein&#x202f;; rien n’a été enregistré.</translation>
    </message>
    <message>
        <source>The disk is too full to carry your messages over to this version: for a while that takes up to {detail} MB more. Make room and start again; nothing was changed.</source>
        <translation>Le disque est trop plein pour reprendre vos messages dans cette version&#xa0;: cela prend pendant un moment jusqu’à {detail}&#xa0;Mo de plus. Faites de la place et relancez&#x202f;; rien n’a été changé.</translation>
    </message>
    <message>
        <source>The disk is too slow: too much waits for it.</source>
        <translation>Le disque est trop lent&#xa0;: trop de travail l’attend.</translation>
    </message>
    <message>
        <source>The disk reported an error.</source>
        <translation>Le disque a signalé une erreur.</translation>
    </message>
    <message>
        <source>The end of this backup is missing, perhaps because copying it broke off. Nothing was restored; copy it again, or use another backup.</source>
        <translation>Il manque la fin de cette sauvegarde, peut-être parce que sa copie a été interrompue. Rien n’a été restauré&#x202f;; copiez-la à nouveau, ou utilisez une autre sauvegarde.</translation>
    </message>
    <message>
        <source>The file cannot be read: {detail}.</source>
        <translation>Le fichier ne peut pas être lu&#xa0;: {detail}.</translation>
    </message>
    <message>
        <source>The file cannot be read: {reason}.</source>
        <translation>Le fichier ne peut pas être lu&#xa0;: {reason}.</translation>
    </message>
    <message>
        <source>The file cannot be written: {detail}.</source>
        <translation>Le fichier ne peut pas être écrit&#xa0;: {detail}.</translation>
    </message>
    <message>
        <source>The file is larger than 10 MB. Choose a smaller picture.</source>
        <translation>Le fichier dépasse 10&#xa0;Mo. Choisissez une image plus petite.</translation>
    </message>
    <message>
        <source>The folder for daily backups is not there: {detail}. If it is on another disk or a stick, connect that.</source>
        <translation>Le dossier des sauvegardes quotidiennes n’est pas là&#xa0;: {detail}. S’il est sur un autre disque ou une clé, branchez-les.</translation>
    </message>
    <message>
        <source>The folder is not there any more: {detail}. If it is on another disk or a stick, connect that.</source>
        <translation>Le dossier n’est plus là&#xa0;: {detail}. S’il est sur un autre disque ou une clé, branchez-les.</translation>
    </message>
    <message>
        <source>The group has no picture</source>
        <translation>Le groupe n’a pas d’image</translation>
    </message>
    <message>
        <source>The group&apos;s key changes: once people have heard of it, {name} cannot read what they write, and nothing that {name} writes counts. What {name} has read already cannot be taken back. {name} sees who removed them, and comes back only by a new invitation.</source>
        <translation>La clé du groupe change&#xa0;: dès que les autres l’ont appris, {name} ne peut plus lire ce qu’ils écrivent, et rien de ce que {name} écrit ne compte. Ce que {name} a déjà lu ne peut être repris. {name} voit qui l’a retiré et ne revient que par une nouvelle invitation.</translation>
    </message>
    <message>
        <source>The group&apos;s picture</source>
        <translation>L’image du groupe</translation>
    </message>
    <message>
        <source>The invitation has expired</source>
        <translation>L’invitation a expiré</translation>
    </message>
    <message>
        <source>The invitation is used up</source>
        <translation>L’invitation est épuisée</translation>
    </message>
    <message>
        <source>The invitation is valid until {date}.</source>
        <translation>L’invitation est valable jusqu’au {date}.</translation>
    </message>
    <message>
        <source>The invitation was revoked</source>
        <translation>L’invitation a été révoquée</translation>
    </message>
    <message>
        <source>The key beside your messages opens them at a start, too, so whoever has the profile&apos;s folder reads them.</source>
        <translation>La clé à côté de vos messages les ouvre aussi au démarrage&#xa0;: quiconque a le dossier du profil les lit.</translation>
    </message>
    <message>
        <source>The key header of this profile and its copy are damaged ({detail}), so its messages cannot be opened. Put a copy of the file back, or restore a backup. Nothing was changed.</source>
        <translation>L’en-tête de clé de ce profil et sa copie sont endommagés ({detail}), ses messages ne peuvent donc pas être ouverts. Remettez une copie du fichier, ou restaurez une sauvegarde. Rien n’a été changé.</translation>
    </message>
    <message>
        <source>The key header of this profile was written by a newer version of Causerie. Install that version; nothing was changed.</source>
        <translation>L’en-tête de clé de ce profil a été écrit par une version plus récente de Causerie. Installez cette version&#x202f;; rien n’a été changé.</translation>
    </message>
    <message>
        <source>The key in this channel link has the wrong length. Ask for a new one.</source>
        <translation>La clé dans ce lien de canal n’a pas la bonne longueur. Demandez un nouveau lien.</translation>
    </message>
    <message>
        <source>The key of this group was lost</source>
        <translation>La clé de ce groupe est perdue</translation>
    </message>
    <message>
        <source>The key of this group was lost: nothing comes or goes. Export what you want to keep, leave, and join again by a new invitation.</source>
        <translation>La clé de ce groupe est perdue&#xa0;: rien n’arrive ni ne part. Exportez ce que vous voulez garder, quittez-le, puis revenez avec une nouvelle invitation.</translation>
    </message>
    <message>
        <source>The key of this profile cannot be read, so its messages cannot be opened. Unlock the system&apos;s keyring, or put the missing file back, and try again. Nothing was changed.</source>
        <translation>La clé de ce profil ne peut pas être lue, ses messages ne peuvent donc pas être ouverts. Déverrouillez le trousseau du système, ou remettez le fichier manquant, et réessayez. Rien n’a été changé.</translation>
    </message>
    <message>
        <source>The key of your records</source>
        <translation>La clé de vos relevés</translation>
    </message>
    <message>
        <source>The key to your messages lies here: {where}.</source>
        <translation>La clé de vos messages est ici&#xa0;: {where}.</translation>
    </message>
    <message>
        <source>The key to your messages lies in a file beside them: keep the profile&apos;s folder to yourself.</source>
        <translation>La clé de vos messages est dans un fichier à côté d’eux&#xa0;: gardez le dossier du profil pour vous.</translation>
    </message>
    <message>
        <source>The key to your messages lies in the system keyring.</source>
        <translation>La clé de vos messages est dans le trousseau du système.</translation>
    </message>
    <message>
        <source>The key to your messages opens with your passphrase.</source>
        <translation>La clé de vos messages s’ouvre avec votre phrase secrète.</translation>
    </message>
    <message>
        <source>The keyring did not give up its entry, which opens nothing any more: its service is Causerie, its account {entry}.</source>
        <translation>Le trousseau n’a pas rendu son entrée, qui n’ouvre plus rien&#xa0;: son service est Causerie, son compte {entry}.</translation>
    </message>
    <message>
        <source>The last 20 minutes</source>
        <translation>Les 20 dernières minutes</translation>
    </message>
    <message>
        <source>The last day</source>
        <translation>Le dernier jour</translation>
    </message>
    <message>
        <source>The last good backup: {when}.</source>
        <translation>Dernière bonne sauvegarde&#xa0;: {when}.</translation>
    </message>
    <message>
        <source>The last hour</source>
        <translation>La dernière heure</translation>
    </message>
    <message>
        <source>The last messages: {said}. The ticks say what others have.</source>
        <translation>Les derniers messages&#xa0;: {said}. Les coches disent ce que les autres ont.</translation>
    </message>
    <message>
        <source>The last one {time} ago.</source>
        <translation>Le dernier il y a {time}.</translation>
    </message>
    <message>
        <source>The last peer was lost {time} ago: {why}.</source>
        <translation>Le dernier pair a été perdu il y a {time}&#xa0;: {why}.</translation>
    </message>
    <message>
        <source>The last sign of life came {time} ago, so your own connection works.</source>
        <translation>Le dernier signe de vie est venu il y a {time}, donc votre propre connexion fonctionne.</translation>
    </message>
    <message>
        <source>The line may be there to protect you, so it is not left out. Mend it and try again. Default settings do without it; your file is kept beside the new one.</source>
        <translation>Cette ligne est peut-être là pour vous protéger, elle n’est donc pas ignorée. Corrigez-la et réessayez. Les paramètres par défaut s’en passent&#x202f;; votre fichier est gardé à côté du nouveau.</translation>
    </message>
    <message>
        <source>The link holds no key. Your device lets people in, and has to be online once after they ask.</source>
        <translation>Le lien ne contient aucune clé. C’est votre appareil qui fait entrer les gens&#x202f;; il doit être en ligne une fois après leur demande.</translation>
    </message>
    <message>
        <source>The link of this group ended when somebody was removed</source>
        <translation>Le lien de ce groupe a pris fin quand quelqu’un a été retiré</translation>
    </message>
    <message>
        <source>The log of this group has no room for more.</source>
        <translation>Le journal de ce groupe n’a plus de place.</translation>
    </message>
    <message numerus="yes">
        <source>The members of the group and your Stores are asked again and again until they arrive</source>
        <comment>The members of the group and your Stores are asked again and again until it arrives</comment>
        <translation>
            <numerusform>Les membres du groupe et vos Stores sont interrogés sans cesse jusqu’à ce qu’il arrive</numerusform>
            <numerusform>Les membres du groupe et vos Stores sont interrogés sans cesse jusqu’à ce qu’ils arrivent</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The newest %n messages</source>
        <comment>The newest message</comment>
        <translation>
            <numerusform>Le message le plus récent</numerusform>
            <numerusform>Les %n messages les plus récents</numerusform>
        </translation>
    </message>
    <message>
        <source>The newest {number} messages are shown.</source>
        <translation>Les {number} messages les plus récents sont affichés.</translation>
    </message>
    <message>
        <source>The oldest goes first.</source>
        <translation>Le plus ancien part d’abord.</translation>
    </message>
    <message>
        <source>The other has it; since when is not recorded</source>
        <translation>L’autre l’a&#x202f;; depuis quand n’a pas été enregistré</translation>
    </message>
    <message>
        <source>The others</source>
        <translation>Les autres</translation>
    </message>
    <message>
        <source>The others are told if they can be reached. Its messages are removed from this device and you need a new invitation to come back.</source>
        <translation>Les autres en sont informés s’ils peuvent être joints. Ses messages sont retirés de cet appareil, et il vous faut une nouvelle invitation pour revenir.</translation>
    </message>
    <message>
        <source>The passphrase is set, but what opened the profile before could not be removed from the system keyring. The next start tries again.</source>
        <translation>La phrase secrète est définie, mais ce qui ouvrait le profil avant n’a pas pu être supprimé du trousseau du système. Le prochain démarrage réessaie.</translation>
    </message>
    <message>
        <source>The picture cannot be made small enough.</source>
        <translation>L’image ne peut pas être assez réduite.</translation>
    </message>
    <message>
        <source>The picture has more than 40 million pixels. Choose a smaller one.</source>
        <translation>L’image a plus de 40 millions de pixels. Choisissez-en une plus petite.</translation>
    </message>
    <message>
        <source>The picture has more than 40 million pixels. Cut out the code and try again.</source>
        <translation>L’image a plus de 40 millions de pixels. Découpez le code et réessayez.</translation>
    </message>
    <message>
        <source>The picture is damaged.</source>
        <translation>L’image est endommagée.</translation>
    </message>
    <message>
        <source>The picture is larger than 10 MB. Choose a smaller one.</source>
        <translation>L’image dépasse 10&#xa0;Mo. Choisissez-en une plus petite.</translation>
    </message>
    <message>
        <source>The picture is larger than 20 MB. Cut out the code and try again.</source>
        <translation>L’image dépasse 20&#xa0;Mo. Découpez le code et réessayez.</translation>
    </message>
    <message>
        <source>The present key of the group is of {time}.</source>
        <translation>La clé actuelle du groupe date de {time}.</translation>
    </message>
    <message>
        <source>The profile &quot;{detail}&quot; is in use by another program, whose window does not answer. Close that program first.</source>
        <translation>Le profil «&#xa0;{detail}&#xa0;» est utilisé par un autre programme, dont la fenêtre ne répond pas. Fermez d’abord ce programme.</translation>
    </message>
    <message>
        <source>The profile &quot;{detail}&quot; is open in another window, which does not answer now. It was told of this start, and goes on with it once it can. If it never does, close that program.</source>
        <translation>Le profil «&#xa0;{detail}&#xa0;» est ouvert dans une autre fenêtre, qui ne répond pas pour l’instant. Elle a reçu votre demande et y donnera suite dès qu’elle le pourra. Si elle ne le fait jamais, fermez ce programme.</translation>
    </message>
    <message>
        <source>The profile is being closed; what was asked last may not have been saved.</source>
        <translation>Le profil est en train de se fermer&#x202f;; ce qui a été demandé en dernier n’a peut-être pas été enregistré.</translation>
    </message>
    <message>
        <source>The profile is erased from this device</source>
        <translation>Le profil est effacé de cet appareil</translation>
    </message>
    <message>
        <source>The profile&apos;s database cannot be used.</source>
        <translation>La base de données du profil ne peut pas être utilisée.</translation>
    </message>
    <message>
        <source>The profile&apos;s folder cannot be used ({detail}).</source>
        <translation>Le dossier du profil ne peut pas être utilisé ({detail}).</translation>
    </message>
    <message>
        <source>The request was declined.</source>
        <translation>La demande a été refusée.</translation>
    </message>
    <message>
        <source>The same again</source>
        <translation>La même encore une fois</translation>
    </message>
    <message>
        <source>The search</source>
        <translation>La recherche</translation>
    </message>
    <message>
        <source>The server cannot be reached ({detail}).</source>
        <translation>Le serveur est injoignable ({detail}).</translation>
    </message>
    <message>
        <source>The server has no announcement ({detail}).</source>
        <translation>Le serveur n’a pas d’annonce ({detail}).</translation>
    </message>
    <message>
        <source>The server leads to another address, which is not followed.</source>
        <translation>Le serveur renvoie à une autre adresse, qui n’est pas suivie.</translation>
    </message>
    <message>
        <source>The setting &quot;{key}&quot; has an impossible value ({place}).</source>
        <translation>Le paramètre «&#xa0;{key}&#xa0;» a une valeur impossible ({place}).</translation>
    </message>
    <message>
        <source>The setting &quot;{key}&quot; is a secret, and others on this machine can read the settings file ({place}).</source>
        <translation>Le paramètre «&#xa0;{key}&#xa0;» est un secret, et d’autres sur cette machine peuvent lire le fichier de paramètres ({place}).</translation>
    </message>
    <message>
        <source>The settings cannot be used</source>
        <translation>Les paramètres ne peuvent pas être utilisés</translation>
    </message>
    <message>
        <source>The settings file cannot be read ({place}).</source>
        <translation>Le fichier de paramètres ne peut pas être lu ({place}).</translation>
    </message>
    <message>
        <source>The settings file is not TOML ({place}).</source>
        <translation>Le fichier de paramètres n’est pas du TOML ({place}).</translation>
    </message>
    <message>
        <source>The settings file is not UTF-8 text ({place}).</source>
        <translation>Le fichier de paramètres n’est pas du texte UTF-8 ({place}).</translation>
    </message>
    <message>
        <source>The settings file is too large ({place}).</source>
        <translation>Le fichier de paramètres est trop volumineux ({place}).</translation>
    </message>
    <message>
        <source>The system keyring opens them at a start, too.</source>
        <translation>Le trousseau du système les ouvre aussi au démarrage.</translation>
    </message>
    <message>
        <source>The time chooses events. Final orders, messages and members are always whole: without them nobody can say what is missing.</source>
        <translation>La durée choisit les événements. Les ordres finaux, les messages et les membres sont toujours entiers&#xa0;: sans eux, personne ne peut dire ce qui manque.</translation>
    </message>
    <message>
        <source>The time of this device was set, so Causerie goes by it again.</source>
        <translation>L’heure de cet appareil a été réglée&#xa0;: Causerie la suit de nouveau.</translation>
    </message>
    <message>
        <source>The time that you go by is {duration} ahead of the others&apos;.</source>
        <translation>L’heure que vous suivez avance de {duration} sur celle des autres.</translation>
    </message>
    <message>
        <source>The time that you go by is {duration} behind the others&apos;.</source>
        <translation>L’heure que vous suivez retarde de {duration} sur celle des autres.</translation>
    </message>
    <message>
        <source>The two are not the same.</source>
        <translation>Les deux ne sont pas identiques.</translation>
    </message>
    <message>
        <source>The whole address is shown first, in a form in which look-alike letters give themselves away. The site learns your network address.</source>
        <translation>L’adresse entière est d’abord montrée, sous une forme où les lettres trompeuses se trahissent. Le site apprend votre adresse réseau.</translation>
    </message>
    <message>
        <source>The window cannot be locked any more, and your messages open without being asked: by the system keyring, or by a key in a file beside them where there is none.</source>
        <translation>La fenêtre ne peut plus être verrouillée, et vos messages s’ouvrent sans rien demander&#xa0;: par le trousseau du système ou, s’il n’y en a pas, par une clé dans un fichier à côté d’eux.</translation>
    </message>
    <message>
        <source>Their contact link</source>
        <translation>Son lien de contact</translation>
    </message>
    <message>
        <source>Their fingerprint</source>
        <translation>Son empreinte</translation>
    </message>
    <message>
        <source>Their fingerprint, compare it if you can</source>
        <translation>Son empreinte, comparez-la si vous le pouvez</translation>
    </message>
    <message>
        <source>Their fingerprint: {fingerprint}</source>
        <translation>Son empreinte&#xa0;: {fingerprint}</translation>
    </message>
    <message>
        <source>Their link or code</source>
        <translation>Son lien ou son code</translation>
    </message>
    <message>
        <source>Then a new one is begun.</source>
        <translation>Puis un nouveau est commencé.</translation>
    </message>
    <message>
        <source>Then it may come back by itself.</source>
        <translation>Ensuite, il peut revenir de lui-même.</translation>
    </message>
    <message numerus="yes">
        <source>There are %n QR codes here, and none is a Causerie link.</source>
        <comment>There is %n QR code here, and it is no Causerie link.</comment>
        <translation>
            <numerusform>Il y a ici %n code QR, et ce n’est pas un lien Causerie.</numerusform>
            <numerusform>Il y a ici %n codes QR, et aucun n’est un lien Causerie.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>There are %n codes with links here. Show only one of them.</source>
        <comment>There is %n code with a link here. Show only one of them.</comment>
        <translation>
            <numerusform>Il y a ici %n code avec un lien. N’en montrez qu’un.</numerusform>
            <numerusform>Il y a ici %n codes avec des liens. N’en montrez qu’un.</numerusform>
        </translation>
    </message>
    <message>
        <source>There are too many faults on purpose. Stop some first.</source>
        <translation>Il y a trop de pannes volontaires. Arrêtez-en d’abord.</translation>
    </message>
    <message>
        <source>There are too many open invitations of yours to this group. Revoke one first.</source>
        <translation>Vous avez déjà trop d’invitations ouvertes à ce groupe. Annulez-en d’abord une.</translation>
    </message>
    <message>
        <source>There can be {limit} Stores.</source>
        <translation>Il peut y avoir {limit} Stores.</translation>
    </message>
    <message>
        <source>There is a file of this name already: {detail}</source>
        <translation>Il y a déjà un fichier de ce nom&#xa0;: {detail}</translation>
    </message>
    <message>
        <source>There is an identity here already, and a backup never takes its place. Nothing was changed.</source>
        <translation>Il y a déjà une identité ici, et une sauvegarde ne prend jamais sa place. Rien n’a été changé.</translation>
    </message>
    <message>
        <source>There is neither a picture nor a link to paste.</source>
        <translation>Il n’y a ni image ni lien à coller.</translation>
    </message>
    <message>
        <source>There is no QR code in this picture that can be read.</source>
        <translation>Cette image ne contient aucun code QR lisible.</translation>
    </message>
    <message>
        <source>There is no QR code on the screen that can be read.</source>
        <translation>Il n’y a à l’écran aucun code QR lisible.</translation>
    </message>
    <message>
        <source>There is no Store in the list yet. Without one, what was said while you were away comes from the other members once they are there. Your group&apos;s founder or whoever runs a node can give you an address.</source>
        <translation>Il n’y a pas encore de Store dans la liste. Sans Store, ce qui s’est dit pendant votre absence vient des autres membres quand ils sont là. Le fondateur de votre groupe, ou qui fait tourner un nœud, peut vous donner une adresse.</translation>
    </message>
    <message>
        <source>There is no other conversation that it could go to.</source>
        <translation>Il n’y a pas d’autre conversation où le transférer.</translation>
    </message>
    <message>
        <source>There is no request to accept any more.</source>
        <translation>Il n’y a plus de demande à accepter.</translation>
    </message>
    <message>
        <source>There is no request to withdraw any more.</source>
        <translation>Il n’y a plus de demande à retirer.</translation>
    </message>
    <message>
        <source>There is no setting &quot;{key}&quot; ({place}).</source>
        <translation>Le paramètre «&#xa0;{key}&#xa0;» n’existe pas ({place}).</translation>
    </message>
    <message>
        <source>There is no such Store in the list.</source>
        <translation>Ce Store n’est pas dans la liste.</translation>
    </message>
    <message>
        <source>There is no such conversation any more.</source>
        <translation>Cette conversation n’existe plus.</translation>
    </message>
    <message>
        <source>There is no such file any more, or it is not a file.</source>
        <translation>Ce fichier n’existe plus, ou n’est pas un fichier.</translation>
    </message>
    <message>
        <source>There is nobody to hear from yet.</source>
        <translation>Il n’y a encore personne dont on puisse avoir signe.</translation>
    </message>
    <message>
        <source>There is not enough memory for this picture.</source>
        <translation>Il n’y a pas assez de mémoire pour cette image.</translation>
    </message>
    <message>
        <source>There is nothing to decline any more.</source>
        <translation>Il n’y a plus rien à refuser.</translation>
    </message>
    <message>
        <source>There is too little free room on the disk for that: {detail} MB are missing. Make room and try again; nothing was changed.</source>
        <translation>Il n’y a pas assez de place libre sur le disque&#xa0;: il manque {detail}&#xa0;Mo. Faites de la place et réessayez&#x202f;; rien n’a été changé.</translation>
    </message>
    <message>
        <source>These are several files. Take one picture at a time.</source>
        <translation>Ce sont plusieurs fichiers. Prenez une image à la fois.</translation>
    </message>
    <message>
        <source>These keys</source>
        <translation>Ces raccourcis</translation>
    </message>
    <message>
        <source>These stay, as they are not Causerie&apos;s or could not be removed: {names}.</source>
        <translation>Ceci reste, car cela n’est pas à Causerie ou n’a pas pu être supprimé&#xa0;: {names}.</translation>
    </message>
    <message>
        <source>They and all messages between you go from this device, and they are not told. They keep what you wrote, and may ask to talk to you again.</source>
        <translation>La personne et tous les messages entre vous disparaissent de cet appareil, et elle n’en est pas informée. Elle garde ce que vous avez écrit et peut redemander à discuter avec vous.</translation>
    </message>
    <message>
        <source>They are asked again by and by.</source>
        <translation>Ils seront interrogés à nouveau peu à peu.</translation>
    </message>
    <message>
        <source>They are asked whether they want to talk to you.</source>
        <translation>On lui demande si elle veut discuter avec vous.</translation>
    </message>
    <message numerus="yes">
        <source>They are in {groups} and %n more of your groups.</source>
        <comment>They are in {groups} and %n more of your groups.</comment>
        <translation>
            <numerusform>Groupes en commun&#xa0;: {groups} et %n de plus.</numerusform>
            <numerusform>Groupes en commun&#xa0;: {groups} et %n de plus.</numerusform>
        </translation>
    </message>
    <message>
        <source>They are in {groups}, as you are.</source>
        <translation>Groupes en commun&#xa0;: {groups}.</translation>
    </message>
    <message>
        <source>They are no member of this group.</source>
        <translation>Cette personne n’est pas membre de ce groupe.</translation>
    </message>
    <message>
        <source>They are not in this group any more.</source>
        <translation>Cette personne n’est plus dans ce groupe.</translation>
    </message>
    <message>
        <source>They are not in this group any more. To write to them alone, one of you needs the other&apos;s contact link.</source>
        <translation>Cette personne n’est plus dans ce groupe. Pour vous écrire en privé, l’une des deux personnes doit avoir le lien de contact de l’autre.</translation>
    </message>
    <message>
        <source>They are not told. Nothing of theirs is taken in or answered until you unblock them.</source>
        <translation>La personne n’en est pas informée. Rien d’elle n’est reçu et rien ne lui est répondu tant que vous ne la débloquez pas.</translation>
    </message>
    <message>
        <source>They are not told. Nothing of theirs is taken in or answered.</source>
        <translation>La personne n’en est pas informée. Rien d’elle n’est reçu et rien ne lui est répondu.</translation>
    </message>
    <message>
        <source>They are told. You can ask again.</source>
        <translation>La personne en est informée. Vous pouvez redemander.</translation>
    </message>
    <message>
        <source>They are two people</source>
        <translation>Ce sont deux personnes</translation>
    </message>
    <message>
        <source>They asked you already: this accepts.</source>
        <translation>La personne vous a déjà demandé&#xa0;: ceci accepte.</translation>
    </message>
    <message>
        <source>They came with an invitation of yours.</source>
        <translation>Avec une de vos invitations.</translation>
    </message>
    <message>
        <source>They can read</source>
        <translation>Ils peuvent lire</translation>
    </message>
    <message>
        <source>They can read everything from the start.</source>
        <translation>On y lit tout depuis le début.</translation>
    </message>
    <message>
        <source>They can read from 30 days ago on.</source>
        <translation>On y lit ce qui date de 30 jours au plus.</translation>
    </message>
    <message>
        <source>They can read only what comes after.</source>
        <translation>On y lit seulement ce qui vient après.</translation>
    </message>
    <message>
        <source>They come again by themselves</source>
        <translation>Ils reviennent d’eux-mêmes</translation>
    </message>
    <message>
        <source>They do not wait to be let in any more.</source>
        <translation>Cette personne n’attend plus que vous la laissiez entrer.</translation>
    </message>
    <message>
        <source>They have not answered your request yet.</source>
        <translation>La personne n’a pas encore répondu à votre demande.</translation>
    </message>
    <message>
        <source>They have to agree before either of you can write. They see your name, your picture, your fingerprint, and which groups you are both in. They can decline or block you.</source>
        <translation>Cette personne doit accepter avant que l’une ou l’autre puisse écrire. Elle voit votre nom, votre image, votre empreinte et les groupes que vous avez en commun. Elle peut refuser ou vous bloquer.</translation>
    </message>
    <message numerus="yes">
        <source>They never arrived, and nobody waits for them any more</source>
        <comment>It never arrived, and nobody waits for it any more</comment>
        <translation>
            <numerusform>Il n’est jamais arrivé, et plus personne ne l’attend</numerusform>
            <numerusform>Ils ne sont jamais arrivés, et plus personne ne les attend</numerusform>
        </translation>
    </message>
    <message>
        <source>They take and keep messages for you while nobody else can be reached. Two or more are best: if one fails, nothing is lost.</source>
        <translation>Ils prennent et gardent des messages pour vous tant que personne d’autre n’est joignable. Mieux vaut en avoir deux ou plus&#xa0;: si l’un tombe, rien n’est perdu.</translation>
    </message>
    <message>
        <source>They take their places from {moment} on, or when the clocks agree.</source>
        <translation>Ils prennent leur place à partir du moment indiqué ({moment}), ou quand les horloges s’accordent.</translation>
    </message>
    <message>
        <source>They were an admin before you, so you cannot do that.</source>
        <translation>Cette personne est admin depuis plus longtemps que vous&#xa0;: vous ne pouvez pas faire cela.</translation>
    </message>
    <message>
        <source>They were told. You can still ask them.</source>
        <translation>La personne en a été informée. Vous pouvez encore lui demander.</translation>
    </message>
    <message>
        <source>This Store is in the list already.</source>
        <translation>Ce Store est déjà dans la liste.</translation>
    </message>
    <message>
        <source>This address is not opened</source>
        <translation>Cette adresse n’est pas ouverte</translation>
    </message>
    <message>
        <source>This backup is damaged, so it cannot be trusted. Nothing was restored; use another one.</source>
        <translation>Cette sauvegarde est endommagée, on ne peut donc pas s’y fier. Rien n’a été restauré&#x202f;; utilisez-en une autre.</translation>
    </message>
    <message>
        <source>This backup was made by a newer version of Causerie. Install that version, and restore it there.</source>
        <translation>Cette sauvegarde a été faite par une version plus récente de Causerie. Installez cette version, et restaurez-la avec elle.</translation>
    </message>
    <message>
        <source>This cannot be done now.</source>
        <translation>Cela ne peut pas se faire maintenant.</translation>
    </message>
    <message>
        <source>This cannot be stored; nothing was saved.</source>
        <translation>Cela ne peut pas être conservé&#x202f;; rien n’a été enregistré.</translation>
    </message>
    <message>
        <source>This cannot be used.</source>
        <translation>Cela ne peut pas être utilisé.</translation>
    </message>
    <message>
        <source>This channel id is too long: at most {limit} bytes are allowed.</source>
        <translation>Cet identifiant de canal est trop long&#xa0;: {limit} octets au plus sont permis.</translation>
    </message>
    <message>
        <source>This channel is on cluster {cluster} and this device is not: nothing is sent or received.</source>
        <translation>Ce canal est sur le cluster {cluster} et cet appareil n’y est pas&#xa0;: rien n’est envoyé ni reçu.</translation>
    </message>
    <message>
        <source>This channel link cannot be read. Ask for a new one.</source>
        <translation>Ce lien de canal est illisible. Demandez-en un nouveau.</translation>
    </message>
    <message>
        <source>This channel link has an unusable cluster or shard in it. Ask for a new one.</source>
        <translation>Ce lien de canal contient un cluster ou un shard inutilisable. Demandez-en un nouveau.</translation>
    </message>
    <message>
        <source>This channel link has an unusable name in it. Ask for a new one.</source>
        <translation>Ce lien de canal contient un nom inutilisable. Demandez-en un nouveau.</translation>
    </message>
    <message>
        <source>This channel link has something in it that does not belong there. Ask for a new one.</source>
        <translation>Ce lien de canal contient quelque chose qui n’y a pas sa place. Demandez-en un nouveau.</translation>
    </message>
    <message>
        <source>This channel link was made by a newer version of Causerie. Update first.</source>
        <translation>Ce lien de canal vient d’une version plus récente de Causerie. Mettez d’abord à jour.</translation>
    </message>
    <message>
        <source>This code is not a Causerie link. It says: {said}</source>
        <translation>Ce code n’est pas un lien Causerie. Il dit&#xa0;: {said}</translation>
    </message>
    <message>
        <source>This contact link cannot be read. Ask for a new one.</source>
        <translation>Ce lien de contact ne peut pas être lu. Demandez-en un nouveau.</translation>
    </message>
    <message>
        <source>This contact link expired on {date}. Ask for a new one.</source>
        <translation>Ce lien de contact a expiré le {date}. Demandez-en un nouveau.</translation>
    </message>
    <message>
        <source>This contact link has an unusable address in it. Ask for a new one.</source>
        <translation>Ce lien de contact contient une adresse inutilisable. Demandez-en un nouveau.</translation>
    </message>
    <message>
        <source>This contact link has an unusable name in it. Ask for a new one.</source>
        <translation>Ce lien de contact contient un nom inutilisable. Demandez-en un nouveau.</translation>
    </message>
    <message>
        <source>This contact link has something in it that does not belong there. Ask for a new one.</source>
        <translation>Ce lien de contact contient quelque chose qui n’a rien à y faire. Demandez-en un nouveau.</translation>
    </message>
    <message>
        <source>This contact link is not signed by the person it names. Do not trust it.</source>
        <translation>Ce lien de contact n’est pas signé par la personne qu’il nomme. Ne vous y fiez pas.</translation>
    </message>
    <message>
        <source>This contact link names a key that cannot be genuine. Do not trust it.</source>
        <translation>Ce lien de contact nomme une clé qui ne peut pas être authentique. Ne vous y fiez pas.</translation>
    </message>
    <message>
        <source>This contact link was made by a newer version of Causerie. Update first.</source>
        <translation>Ce lien de contact a été fait par une version plus récente de Causerie. Mettez d’abord à jour.</translation>
    </message>
    <message>
        <source>This contradicts what is stored already; nothing was saved.</source>
        <translation>Cela contredit ce qui est déjà enregistré&#x202f;; rien n’a été enregistré.</translation>
    </message>
    <message>
        <source>This conversation could not be loaded.</source>
        <translation>Cette conversation n’a pas pu être chargée.</translation>
    </message>
    <message>
        <source>This conversation is not in the profile any more.</source>
        <translation>Cette conversation n’est plus dans le profil.</translation>
    </message>
    <message>
        <source>This conversation is still being read from the disk. Try again in a moment.</source>
        <translation>Cette conversation est encore en cours de lecture sur le disque. Réessayez dans un instant.</translation>
    </message>
    <message>
        <source>This desktop (Wayland) lets no program read the screen. Make a screenshot and paste it here.</source>
        <translation>Ce bureau (Wayland) ne laisse aucun programme lire l’écran. Faites une capture d’écran et collez-la ici.</translation>
    </message>
    <message>
        <source>This desktop does not show Causerie what is on it. Make a screenshot and paste it here.</source>
        <translation>Ce bureau ne montre pas à Causerie ce qu’il affiche. Faites une capture d’écran et collez-la ici.</translation>
    </message>
    <message>
        <source>This desktop has no tray, so closing the window ends the program. Nothing arrives on this device until you start it again; then it fetches what it missed.</source>
        <translation>Ce bureau n’a pas de zone de notification&#xa0;: fermer la fenêtre termine donc le programme. Rien n’arrive sur cet appareil avant que vous le relanciez&#x202f;; il récupère alors ce qu’il a manqué.</translation>
    </message>
    <message>
        <source>This device</source>
        <translation>Cet appareil</translation>
    </message>
    <message numerus="yes">
        <source>This device is connected to %n peers.</source>
        <comment>This device is connected to %n peer.</comment>
        <translation>
            <numerusform>Cet appareil est connecté à %n pair.</numerusform>
            <numerusform>Cet appareil est connecté à %n pairs.</numerusform>
        </translation>
    </message>
    <message>
        <source>This device is offline. It goes on by itself once somebody is connected.</source>
        <translation>Cet appareil est hors ligne. Cela reprend tout seul dès que quelqu’un est connecté.</translation>
    </message>
    <message>
        <source>This device is on cluster {limit}, so it cannot reach a channel on cluster {given}. Choose that network in the settings, or use another profile for it.</source>
        <translation>Cet appareil est sur le cluster {limit} et ne peut donc pas joindre un canal du cluster {given}. Choisissez ce réseau dans les paramètres, ou utilisez un autre profil pour lui.</translation>
    </message>
    <message>
        <source>This device&apos;s clock is {duration} ahead of the others&apos;.</source>
        <translation>L’horloge de cet appareil avance de {duration} sur celle des autres.</translation>
    </message>
    <message>
        <source>This device&apos;s clock is {duration} behind the others&apos;.</source>
        <translation>L’horloge de cet appareil retarde de {duration} sur celle des autres.</translation>
    </message>
    <message>
        <source>This file has {given} bytes; at most {limit} can be sent at once.</source>
        <translation>Ce fichier a {given} octets&#x202f;; au plus {limit} peuvent être envoyés à la fois.</translation>
    </message>
    <message>
        <source>This file is empty.</source>
        <translation>Ce fichier est vide.</translation>
    </message>
    <message>
        <source>This file is no backup of Causerie.</source>
        <translation>Ce fichier n’est pas une sauvegarde de Causerie.</translation>
    </message>
    <message>
        <source>This file is too large to be shown here.</source>
        <translation>Ce fichier est trop volumineux pour être affiché ici.</translation>
    </message>
    <message>
        <source>This happens once and may take minutes. You may stop it: nothing is lost, and the next start begins anew.</source>
        <translation>Cela n’arrive qu’une fois et peut prendre quelques minutes. Vous pouvez l’arrêter&#xa0;: rien n’est perdu, et le prochain démarrage recommence.</translation>
    </message>
    <message>
        <source>This invitation cannot be read. Ask for a new one.</source>
        <translation>Cette invitation ne peut pas être lue. Demandez-en une nouvelle.</translation>
    </message>
    <message>
        <source>This invitation expired on {date}. Ask for a new one.</source>
        <translation>Cette invitation a expiré le {date}. Demandez-en une nouvelle.</translation>
    </message>
    <message>
        <source>This invitation has an unusable address in it. Ask for a new one.</source>
        <translation>Cette invitation contient une adresse inutilisable. Demandez-en une nouvelle.</translation>
    </message>
    <message>
        <source>This invitation has an unusable name in it. Ask for a new one.</source>
        <translation>Cette invitation contient un nom inutilisable. Demandez-en une nouvelle.</translation>
    </message>
    <message>
        <source>This invitation has an unusable service node in it. Ask for a new one.</source>
        <translation>Cette invitation contient un nœud de service inutilisable. Demandez-en une nouvelle.</translation>
    </message>
    <message>
        <source>This invitation has expired</source>
        <translation>Cette invitation a expiré</translation>
    </message>
    <message>
        <source>This invitation has something in it that does not belong there. Ask for a new one.</source>
        <translation>Cette invitation contient quelque chose qui n’a rien à y faire. Demandez-en une nouvelle.</translation>
    </message>
    <message>
        <source>This invitation is not open any more.</source>
        <translation>Cette invitation n’est plus valable.</translation>
    </message>
    <message>
        <source>This invitation is not signed by the person it names. Do not trust it.</source>
        <translation>Cette invitation n’est pas signée par la personne qu’elle nomme. Ne vous y fiez pas.</translation>
    </message>
    <message>
        <source>This invitation is used up</source>
        <translation>Cette invitation est épuisée</translation>
    </message>
    <message>
        <source>This invitation names an admin key that cannot be genuine. Do not trust it.</source>
        <translation>Cette invitation nomme une clé d’admin qui ne peut pas être authentique. Ne vous y fiez pas.</translation>
    </message>
    <message>
        <source>This invitation was made by a newer version of Causerie. Update first.</source>
        <translation>Cette invitation a été faite par une version plus récente de Causerie. Mettez d’abord à jour.</translation>
    </message>
    <message>
        <source>This invitation was revoked</source>
        <translation>Cette invitation a été révoquée</translation>
    </message>
    <message>
        <source>This is a person&apos;s contact link. Choose “Add a person” for it.</source>
        <translation>C’est le lien de contact d’une personne. Choisissez pour lui «&#xa0;Ajouter une personne&#xa0;».</translation>
    </message>
    <message>
        <source>This is all that the Stores have.</source>
        <translation>C’est tout ce que les Stores ont.</translation>
    </message>
    <message>
        <source>This is an invitation to a group. Choose “Join with an invitation” for it.</source>
        <translation>C’est une invitation à un groupe. Choisissez pour elle «&#xa0;Rejoindre avec une invitation&#xa0;».</translation>
    </message>
    <message>
        <source>This is an invitation, not a contact link. Join with it.</source>
        <translation>C’est une invitation, pas un lien de contact. Elle sert à rejoindre un groupe ou un canal.</translation>
    </message>
    <message>
        <source>This is far too long for a contact link.</source>
        <translation>C’est beaucoup trop long pour un lien de contact.</translation>
    </message>
    <message>
        <source>This is far too long for an invitation.</source>
        <translation>C’est beaucoup trop long pour une invitation.</translation>
    </message>
    <message>
        <source>This is far too long to be a channel link.</source>
        <translation>C’est bien trop long pour un lien de canal.</translation>
    </message>
    <message>
        <source>This is far too long to be a contact link.</source>
        <translation>C’est beaucoup trop long pour un lien de contact.</translation>
    </message>
    <message>
        <source>This is far too long to be an invitation link.</source>
        <translation>C’est beaucoup trop long pour un lien d’invitation.</translation>
    </message>
    <message>
        <source>This is neither a PNG nor a JPEG picture.</source>
        <translation>Ce n’est ni une image PNG ni une image JPEG.</translation>
    </message>
    <message>
        <source>This is no invitation to a group, but the link of a person or a channel.</source>
        <translation>Ce n’est pas une invitation à un groupe, mais le lien d’une personne ou d’un canal.</translation>
    </message>
    <message>
        <source>This is not a Causerie channel link: those start with {prefix}</source>
        <translation>Ce n’est pas un lien de canal de Causerie&#xa0;: ceux-ci commencent par {prefix}</translation>
    </message>
    <message>
        <source>This is not a Causerie contact link: those start with {prefix}</source>
        <translation>Ce n’est pas un lien de contact Causerie&#xa0;: ceux-ci commencent par {prefix}</translation>
    </message>
    <message>
        <source>This is not a Causerie invitation link: those start with {prefix}</source>
        <translation>Ce n’est pas un lien d’invitation Causerie&#xa0;: ceux-ci commencent par {prefix}</translation>
    </message>
    <message>
        <source>This is not the passphrase of this backup.</source>
        <translation>Ce n’est pas la phrase secrète de cette sauvegarde.</translation>
    </message>
    <message>
        <source>This is not the passphrase.</source>
        <translation>Ce n’est pas la phrase secrète.</translation>
    </message>
    <message>
        <source>This is round (epoch) {epoch}; a round takes {length}.</source>
        <translation>C’est le tour (époque) {epoch}&#x202f;; un tour dure {length}.</translation>
    </message>
    <message>
        <source>This is the link of a person or a group, not a channel link.</source>
        <translation>C’est le lien d’une personne ou d’un groupe, pas un lien de canal.</translation>
    </message>
    <message>
        <source>This is the newest version.</source>
        <translation>C’est la version la plus récente.</translation>
    </message>
    <message>
        <source>This is your own contact link. Send it to somebody, or paste the link of another.</source>
        <translation>C’est votre propre lien de contact. Envoyez-le à quelqu’un, ou collez le lien de quelqu’un d’autre.</translation>
    </message>
    <message>
        <source>This link is cut off. Copy the whole link.</source>
        <translation>Ce lien est coupé. Copiez le lien entier.</translation>
    </message>
    <message>
        <source>This link is too long: a channel link has at most {limit} characters.</source>
        <translation>Ce lien est trop long&#xa0;: un lien de canal a au plus {limit} caractères.</translation>
    </message>
    <message>
        <source>This link is too long: a contact link has at most {limit} characters.</source>
        <translation>Ce lien est trop long&#xa0;: un lien de contact a au plus {limit} caractères.</translation>
    </message>
    <message>
        <source>This link is too long: an invitation link has at most {limit} characters.</source>
        <translation>Ce lien est trop long&#xa0;: un lien d’invitation a au plus {limit} caractères.</translation>
    </message>
    <message>
        <source>This link leads to no message</source>
        <translation>Ce lien ne mène à aucun message</translation>
    </message>
    <message>
        <source>This link was cut off or changed on its way. Copy the whole link.</source>
        <translation>Ce lien a été coupé ou modifié en chemin. Copiez le lien entier.</translation>
    </message>
    <message>
        <source>This message has no file.</source>
        <translation>Ce message n’a pas de fichier.</translation>
    </message>
    <message>
        <source>This message has {given} bytes; at most {limit} can be sent at once.</source>
        <translation>Ce message a {given} octets&#x202f;; au plus {limit} peuvent être envoyés à la fois.</translation>
    </message>
    <message>
        <source>This message is not here any more.</source>
        <translation>Ce message n’est plus ici.</translation>
    </message>
    <message>
        <source>This message is not on this device</source>
        <translation>Ce message n’est pas sur cet appareil</translation>
    </message>
    <message>
        <source>This message is not on this device any more.</source>
        <translation>Ce message n’est plus sur cet appareil.</translation>
    </message>
    <message>
        <source>This message was deleted.</source>
        <translation>Ce message a été supprimé.</translation>
    </message>
    <message>
        <source>This name cannot be used: nothing is left of the name.</source>
        <translation>Ce nom ne peut pas être utilisé&#xa0;: il n’en reste rien.</translation>
    </message>
    <message>
        <source>This name cannot be used: the name is longer than {limit} characters.</source>
        <translation>Ce nom ne peut pas être utilisé&#xa0;: il dépasse {limit} caractères.</translation>
    </message>
    <message>
        <source>This picture cannot be used: the picture is larger than {limit} bytes.</source>
        <translation>Cette image ne peut pas être utilisée&#xa0;: elle dépasse {limit} octets.</translation>
    </message>
    <message>
        <source>This picture cannot be used: the picture is neither PNG nor JPEG.</source>
        <translation>Cette image ne peut pas être utilisée&#xa0;: elle n’est ni PNG ni JPEG.</translation>
    </message>
    <message>
        <source>This profile opens with its passphrase.</source>
        <translation>Ce profil s’ouvre avec sa phrase secrète.</translation>
    </message>
    <message>
        <source>This profile takes {size} on this device.</source>
        <translation>Ce profil occupe {size} sur cet appareil.</translation>
    </message>
    <message>
        <source>This profile was used in two places at once.</source>
        <translation>Ce profil a été utilisé à deux endroits à la fois.</translation>
    </message>
    <message>
        <source>This profile was written by a newer version of Causerie. Install that version; nothing was changed.</source>
        <translation>Ce profil a été écrit par une version plus récente de Causerie. Installez cette version&#x202f;; rien n’a été changé.</translation>
    </message>
    <message>
        <source>This profile was written by a test version whose format is not used any more. Nothing was changed.</source>
        <translation>Ce profil a été écrit par une version de test dont le format n’est plus utilisé. Rien n’a été changé.</translation>
    </message>
    <message>
        <source>This system has no font for emoji, so they are shown by name.</source>
        <translation>Ce système n’a pas de police d’emojis&#xa0;: ils sont montrés par leur nom.</translation>
    </message>
    <message numerus="yes">
        <source>This was not the passphrase. Try again in %n seconds.</source>
        <comment>This was not the passphrase. Try again in %n second.</comment>
        <translation>
            <numerusform>Ce n’était pas la phrase secrète. Réessayez dans %n&#xa0;seconde.</numerusform>
            <numerusform>Ce n’était pas la phrase secrète. Réessayez dans %n&#xa0;secondes.</numerusform>
        </translation>
    </message>
    <message>
        <source>This {name} is not the {name} whose key you compared</source>
        <translation>{name}, ici, n’est pas la personne nommée {name} dont vous avez comparé la clé</translation>
    </message>
    <message>
        <source>Those of earlier starts are deleted. This cannot be undone.</source>
        <translation>Ceux des démarrages précédents sont supprimés. C’est irrévocable.</translation>
    </message>
    <message>
        <source>Three short steps. Nothing leaves this device until you join a conversation.</source>
        <translation>Trois petites étapes. Rien ne quitte cet appareil avant que vous rejoigniez une conversation.</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>Heure</translation>
    </message>
    <message>
        <source>Time range</source>
        <translation>Période</translation>
    </message>
    <message>
        <source>Time until everyone holds it</source>
        <translation>Temps pour être chez tous</translation>
    </message>
    <message>
        <source>To do</source>
        <translation>À faire</translation>
    </message>
    <message>
        <source>To service nodes: {done}</source>
        <translation>Vers les nœuds de service&#xa0;: {done}</translation>
    </message>
    <message>
        <source>To the first message, to the newest</source>
        <translation>Au premier message, au plus récent</translation>
    </message>
    <message>
        <source>To the message it answers</source>
        <translation>Au message auquel il répond</translation>
    </message>
    <message>
        <source>To the newest message</source>
        <translation>Au message le plus récent</translation>
    </message>
    <message numerus="yes">
        <source>To the newest message, %n unread</source>
        <comment>To the newest message, %n unread</comment>
        <translation>
            <numerusform>Au message le plus récent, %n non lu</numerusform>
            <numerusform>Au message le plus récent, %n non lus</numerusform>
        </translation>
    </message>
    <message>
        <source>To the next area, to the one before</source>
        <translation>Vers la zone suivante, vers la précédente</translation>
    </message>
    <message>
        <source>Today</source>
        <translation>Aujourd’hui</translation>
    </message>
    <message>
        <source>Too many wrong passphrases. Try again in {detail} seconds.</source>
        <translation>Trop de phrases secrètes erronées. Réessayez dans {detail}&#xa0;secondes.</translation>
    </message>
    <message>
        <source>Too short</source>
        <translation>Trop courte</translation>
    </message>
    <message>
        <source>Topic</source>
        <translation>Sujet</translation>
    </message>
    <message>
        <source>Train</source>
        <translation>Train</translation>
    </message>
    <message>
        <source>Travel and places</source>
        <translation>Voyages et lieux</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Réessayer</translation>
    </message>
    <message>
        <source>Turn off</source>
        <translation>Arrêter</translation>
    </message>
    <message>
        <source>Turn on automatic date and time in the settings of your desktop, or run “timedatectl set-ntp true” in a terminal.</source>
        <translation>Activez la date et l’heure automatiques dans les paramètres de votre bureau, ou lancez «&#xa0;timedatectl set-ntp true&#xa0;» dans un terminal.</translation>
    </message>
    <message>
        <source>Two devices, or a copy of this profile, counted their messages alike and said different things. Both messages are kept. Use a profile in one place only.</source>
        <translation>Deux appareils, ou une copie de ce profil, ont compté leurs messages de la même façon et dit des choses différentes. Les deux messages sont gardés. N’utilisez un profil qu’à un seul endroit.</translation>
    </message>
    <message>
        <source>Type the profile&apos;s name to go on: {name}</source>
        <translation>Pour continuer, tapez le nom du profil&#xa0;: {name}</translation>
    </message>
    <message>
        <source>Typical time to a member</source>
        <translation>Délai typique par membre</translation>
    </message>
    <message>
        <source>Unblock</source>
        <translation>Débloquer</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>Annuler</translation>
    </message>
    <message>
        <source>Undo deleting</source>
        <translation>Annuler la suppression</translation>
    </message>
    <message>
        <source>Unknown: it came before this was noted</source>
        <translation>Inconnu&#xa0;: il est venu avant que cela soit noté</translation>
    </message>
    <message>
        <source>Unlock</source>
        <translation>Déverrouiller</translation>
    </message>
    <message>
        <source>Unmute</source>
        <translation>Réactiver</translation>
    </message>
    <message>
        <source>Unmute (muted {until})</source>
        <translation>Réactiver (en sourdine {until})</translation>
    </message>
    <message>
        <source>Unmute ({muted})</source>
        <translation>Réactiver ({muted})</translation>
    </message>
    <message>
        <source>Unpin</source>
        <translation>Désépingler</translation>
    </message>
    <message>
        <source>Unread</source>
        <translation>Non lus</translation>
    </message>
    <message>
        <source>Until switched off</source>
        <translation>Jusqu’à désactivation</translation>
    </message>
    <message>
        <source>Until switched on</source>
        <translation>Jusqu’à réactivation</translation>
    </message>
    <message>
        <source>Until you stop it.</source>
        <translation>Jusqu’à ce que vous l’arrêtiez.</translation>
    </message>
    <message>
        <source>Unused room in the database</source>
        <translation>Place inutilisée dans la base de données</translation>
    </message>
    <message>
        <source>Unusually much is sent here. Messages beyond a day&apos;s limit are kept aside and not shown.</source>
        <translation>Il s’envoie ici plus de messages que d’ordinaire. Au-delà de la limite d’un jour, ils sont mis de côté et ne s’affichent pas.</translation>
    </message>
    <message>
        <source>Up to this day</source>
        <translation>Jusqu’à ce jour</translation>
    </message>
    <message>
        <source>Up to {size} MB</source>
        <translation>Jusqu’à {size}&#xa0;Mo</translation>
    </message>
    <message>
        <source>Use an invitation or a contact link you were given, or make a group.</source>
        <translation>Utilisez une invitation ou un lien de contact qu’on vous a donné, ou créez un groupe.</translation>
    </message>
    <message>
        <source>Use another invitation…</source>
        <translation>Une autre invitation…</translation>
    </message>
    <message>
        <source>Use any free port</source>
        <translation>Utiliser n’importe quel port libre</translation>
    </message>
    <message>
        <source>Use default settings</source>
        <translation>Utiliser les paramètres par défaut</translation>
    </message>
    <message>
        <source>Use the Stores of my groups</source>
        <translation>Utiliser les Stores de mes groupes</translation>
    </message>
    <message>
        <source>Use {address}</source>
        <translation>Utiliser {address}</translation>
    </message>
    <message>
        <source>Used last</source>
        <translation>Derniers utilisés</translation>
    </message>
    <message>
        <source>Usual</source>
        <translation>Habituel</translation>
    </message>
    <message>
        <source>Valid for</source>
        <translation>Valable</translation>
    </message>
    <message>
        <source>Verified: you compared this person&apos;s key.</source>
        <translation>Identité vérifiée&#xa0;: vous avez comparé la clé de cette personne.</translation>
    </message>
    <message>
        <source>Versions of this message</source>
        <translation>Versions de ce message</translation>
    </message>
    <message>
        <source>View</source>
        <translation>Vue</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>En attente</translation>
    </message>
    <message>
        <source>Waiting for an answer</source>
        <translation>En attente d’une réponse</translation>
    </message>
    <message>
        <source>Waiting for earlier messages.</source>
        <translation>En attente de messages antérieurs.</translation>
    </message>
    <message>
        <source>Waiting for network</source>
        <translation>En attente du réseau</translation>
    </message>
    <message>
        <source>Waiting for {name} to accept</source>
        <translation>En attente que {name} accepte</translation>
    </message>
    <message>
        <source>Waiting to be let in</source>
        <translation>En attente d’entrer</translation>
    </message>
    <message>
        <source>Waiting to be let into {group}</source>
        <translation>En attente d’entrer dans {group}</translation>
    </message>
    <message>
        <source>Waiting to fetch earlier messages. {why}</source>
        <translation>En attente de récupérer des messages antérieurs. {why}</translation>
    </message>
    <message>
        <source>Waiting to fetch earlier messages…</source>
        <translation>En attente de récupérer des messages antérieurs…</translation>
    </message>
    <message>
        <source>Waiting to fetch history</source>
        <translation>En attente de récupérer l’historique</translation>
    </message>
    <message>
        <source>Waiting · {size}</source>
        <translation>En attente · {size}</translation>
    </message>
    <message numerus="yes">
        <source>Waits for %n earlier messages</source>
        <comment>Waits for %n earlier message</comment>
        <translation>
            <numerusform>Attend %n message antérieur</numerusform>
            <numerusform>Attend %n messages antérieurs</numerusform>
        </translation>
    </message>
    <message>
        <source>Waits for an earlier message of its author</source>
        <translation>Attend un message antérieur de son auteur</translation>
    </message>
    <message>
        <source>Waits until somebody can be reached</source>
        <translation>Attend que quelqu’un soit joignable</translation>
    </message>
    <message>
        <source>Waits until the time that it bears</source>
        <translation>Attend l’heure qu’il porte</translation>
    </message>
    <message>
        <source>Waku cluster</source>
        <translation>Cluster Waku</translation>
    </message>
    <message>
        <source>Wants to talk to you</source>
        <translation>Veut discuter avec vous</translation>
    </message>
    <message>
        <source>Warnings and errors</source>
        <translation>Avertissements et erreurs</translation>
    </message>
    <message>
        <source>Weak: it may be guessed by whoever has the file</source>
        <translation>Faible&#xa0;: qui a le fichier peut la deviner</translation>
    </message>
    <message>
        <source>Weekly ones kept</source>
        <translation>Hebdomadaires gardées</translation>
    </message>
    <message>
        <source>Welcome to Causerie</source>
        <translation>Bienvenue dans Causerie</translation>
    </message>
    <message>
        <source>What</source>
        <translation>Quoi</translation>
    </message>
    <message>
        <source>What came cannot be used ({reason}).</source>
        <translation>Ce qui est arrivé ne peut pas être utilisé ({reason}).</translation>
    </message>
    <message>
        <source>What can be done</source>
        <translation>Ce qui est possible</translation>
    </message>
    <message>
        <source>What can be done with it</source>
        <translation>Ce qu’on peut en faire</translation>
    </message>
    <message>
        <source>What can be done with this Store</source>
        <translation>Ce qu’on peut faire de ce Store</translation>
    </message>
    <message>
        <source>What can be done with {address}</source>
        <translation>Ce qu’on peut faire de {address}</translation>
    </message>
    <message>
        <source>What can be read is copied; the damaged database stays as it is. You may stop it: nothing has changed then.</source>
        <translation>Ce qui peut être lu est copié&#x202f;; la base endommagée reste comme elle est. Vous pouvez l’arrêter&#xa0;: rien n’aura changé.</translation>
    </message>
    <message>
        <source>What follows “causerie:message/” is no message&apos;s id: it was changed or cut off. Open the report again, and click the message there.</source>
        <translation>Ce qui suit «&#xa0;causerie:message/&#xa0;» n’est pas l’identifiant d’un message&#xa0;: il a été modifié ou coupé. Rouvrez le rapport, et cliquez-y sur le message.</translation>
    </message>
    <message>
        <source>What happened</source>
        <translation>Ce qui s’est passé</translation>
    </message>
    <message>
        <source>What happened to connections</source>
        <translation>Ce qui est arrivé aux connexions</translation>
    </message>
    <message>
        <source>What is kept on this device, and for how long.</source>
        <translation>Ce qui est gardé sur cet appareil, et pour combien de temps.</translation>
    </message>
    <message>
        <source>What is not read yet is in the archive.</source>
        <translation>Ce qui n’est pas encore lu se trouve dans les archives.</translation>
    </message>
    <message>
        <source>What it is about</source>
        <translation>De quoi il est question</translation>
    </message>
    <message>
        <source>What it names is not known here</source>
        <translation>Ce qu’il nomme n’est pas connu ici</translation>
    </message>
    <message>
        <source>What it waits for</source>
        <translation>Ce qu’il attend</translation>
    </message>
    <message>
        <source>What its button does</source>
        <translation>Ce que fait son bouton</translation>
    </message>
    <message>
        <source>What one member sends, repairs by them too. What you send goes to everybody, so it cannot be spoiled for one; but their peer can be chosen above.</source>
        <translation>Ce qu’un membre envoie, ses réparations comprises. Ce que vous envoyez va à tout le monde et ne peut donc pas être gâché pour un seul&#x202f;; mais son pair peut être choisi plus haut.</translation>
    </message>
    <message>
        <source>What opens this profile otherwise does not work just now: the system keyring is locked or was changed, or a file is missing. The passphrase opens it all the same.</source>
        <translation>Ce qui ouvre ce profil d’habitude ne fonctionne pas en ce moment&#xa0;: le trousseau du système est verrouillé ou a changé, ou un fichier manque. La phrase secrète l’ouvre quand même.</translation>
    </message>
    <message>
        <source>What others learn besides your messages.</source>
        <translation>Ce que les autres apprennent en plus de vos messages.</translation>
    </message>
    <message>
        <source>What people you talk to see of you.</source>
        <translation>Ce que voient de vous les personnes avec qui vous discutez.</translation>
    </message>
    <message>
        <source>What should people call you?</source>
        <translation>Comment doit-on vous appeler&#x202f;?</translation>
    </message>
    <message>
        <source>What stays elsewhere: others keep what you wrote to them, and are not told. Backups and exported conversations stay where they are.</source>
        <translation>Ce qui reste ailleurs&#xa0;: les autres gardent ce que vous leur avez écrit et n’en sont pas informés. Les sauvegardes et les conversations exportées restent où elles sont.</translation>
    </message>
    <message>
        <source>What the desktop is told, and what becomes of the window when you close it.</source>
        <translation>Ce qui est signalé au bureau, et ce que devient la fenêtre quand vous la fermez.</translation>
    </message>
    <message>
        <source>What the report holds</source>
        <translation>Contenu du rapport</translation>
    </message>
    <message>
        <source>What the search knew of your messages was damaged. It is made again; no message is lost.</source>
        <translation>Ce que la recherche savait de vos messages était endommagé. Cela est refait&#x202f;; aucun message n’est perdu.</translation>
    </message>
    <message>
        <source>What the server sent is no announcement ({detail}).</source>
        <translation>Ce que le serveur a envoyé n’est pas une annonce ({detail}).</translation>
    </message>
    <message>
        <source>What the server sent is too large for an announcement.</source>
        <translation>Ce que le serveur a envoyé est trop volumineux pour une annonce.</translation>
    </message>
    <message numerus="yes">
        <source>What turns up takes its place here.</source>
        <comment>If it ever turns up, it takes its place here.</comment>
        <translation>
            <numerusform>S’il réapparaît un jour, il prend sa place ici.</numerusform>
            <numerusform>Ce qui réapparaît prend sa place ici.</numerusform>
        </translation>
    </message>
    <message>
        <source>What was found</source>
        <translation>Ce qui a été trouvé</translation>
    </message>
    <message>
        <source>What was saved last is gone: the end of the file with the newest changes is missing.</source>
        <translation>Ce qui a été enregistré en dernier est perdu&#xa0;: la fin du fichier des changements les plus récents manque.</translation>
    </message>
    <message>
        <source>What was written before you came cannot be read here: {who} chose that.</source>
        <translation>Ce qui a été écrit avant votre arrivée ne peut pas être lu ici&#xa0;: ainsi l’a voulu {who}.</translation>
    </message>
    <message>
        <source>What was written in groups since then comes as soon as you are connected.</source>
        <translation>Ce qui a été écrit depuis dans les groupes arrive dès que vous êtes connecté.</translation>
    </message>
    <message>
        <source>What you write and acknowledge shows it all the same. Without it, what others sent while you were away may take longer to come.</source>
        <translation>Ce que vous écrivez et confirmez le montre de toute façon. Sans cela, ce que les autres ont envoyé en votre absence peut mettre plus longtemps à venir.</translation>
    </message>
    <message>
        <source>When</source>
        <translation>Quand</translation>
    </message>
    <message>
        <source>When each message was sent, arrived, was missing and was acknowledged.</source>
        <translation>Quand chaque message a été envoyé, est arrivé, manquait et a été confirmé.</translation>
    </message>
    <message>
        <source>When people were last heard</source>
        <translation>Dernier signe de chaque personne</translation>
    </message>
    <message>
        <source>When the desktop locks its own. Needs a passphrase.</source>
        <translation>Quand le bureau verrouille le sien. Demande une phrase secrète.</translation>
    </message>
    <message>
        <source>When the last backup is older than 30 days.</source>
        <translation>Quand la dernière sauvegarde a plus de 30 jours.</translation>
    </message>
    <message>
        <source>When the window is closed</source>
        <translation>À la fermeture de la fenêtre</translation>
    </message>
    <message>
        <source>Where it lies</source>
        <translation>Son emplacement</translation>
    </message>
    <message>
        <source>Where shall it be put?</source>
        <translation>Où faut-il le mettre&#x202f;?</translation>
    </message>
    <message>
        <source>Where the desktop has a tray.</source>
        <translation>Si le bureau a une zone de notification.</translation>
    </message>
    <message>
        <source>Where the key lies</source>
        <translation>Emplacement de la clé</translation>
    </message>
    <message>
        <source>Where the space goes</source>
        <translation>Où va l’espace</translation>
    </message>
    <message>
        <source>Where to put the backup</source>
        <translation>Où mettre la sauvegarde</translation>
    </message>
    <message>
        <source>Which Stores keep it: {unknown}.</source>
        <translation>Quels Stores le gardent&#xa0;: {unknown}.</translation>
    </message>
    <message>
        <source>While Causerie runs, it makes one encrypted backup a day and deletes the oldest of its own. A folder on another disk outlives this device.</source>
        <translation>Tant que Causerie est ouvert, il fait une sauvegarde chiffrée par jour et supprime les plus anciennes des siennes. Un dossier sur un autre disque survit à cet appareil.</translation>
    </message>
    <message>
        <source>While writing</source>
        <translation>En écrivant</translation>
    </message>
    <message>
        <source>Who can come in</source>
        <translation>Qui peut entrer</translation>
    </message>
    <message>
        <source>Who else holds it is not recorded</source>
        <translation>Qui d’autre le détient n’a pas été enregistré</translation>
    </message>
    <message>
        <source>Who holds it</source>
        <translation>Qui le détient</translation>
    </message>
    <message>
        <source>Who holds it…</source>
        <translation>Qui le détient…</translation>
    </message>
    <message>
        <source>Who holds what</source>
        <translation>Qui a quoi</translation>
    </message>
    <message>
        <source>Who holds what, as a table</source>
        <translation>Qui détient quoi, en tableau</translation>
    </message>
    <message>
        <source>Who may let others in</source>
        <translation>Qui peut faire entrer d’autres personnes</translation>
    </message>
    <message>
        <source>Who reacted</source>
        <translation>Qui a réagi</translation>
    </message>
    <message>
        <source>Who reacted…</source>
        <translation>Qui a réagi…</translation>
    </message>
    <message numerus="yes">
        <source>Who wrote them sends them again and again until they arrive</source>
        <comment>Who wrote it sends it again and again until it arrives</comment>
        <translation>
            <numerusform>Qui l’a écrit le renvoie sans cesse jusqu’à ce qu’il arrive</numerusform>
            <numerusform>Qui les a écrits les renvoie sans cesse jusqu’à ce qu’ils arrivent</numerusform>
        </translation>
    </message>
    <message>
        <source>Whoever has all of it seems not to be connected. It is asked for by and by.</source>
        <translation>La personne qui l’a en entier ne semble pas connectée. De nouvelles demandes suivront.</translation>
    </message>
    <message>
        <source>Whoever has it can ask to talk to you; you decide. It expires on {expires}.</source>
        <translation>Quiconque l’a peut demander à discuter avec vous&#x202f;; c’est vous qui décidez. Il expire le {expires}.</translation>
    </message>
    <message>
        <source>Whoever has the link can read along, and nobody has a role. That ends for good when you remove somebody; what was written before stays readable for them.</source>
        <translation>Quiconque a le lien peut lire, et personne n’a de rôle. Cela prend fin pour de bon quand vous retirez quelqu’un&#xa0;; ce qui a été écrit avant reste lisible pour ces personnes.</translation>
    </message>
    <message>
        <source>Whoever has the link comes in at once.</source>
        <translation>Quiconque a le lien entre aussitôt.</translation>
    </message>
    <message>
        <source>Whoever has them learns that you are there. Without it, a click fetches each.</source>
        <translation>Ceux qui les ont apprennent que vous êtes là. Sans cela, un clic récupère chacune.</translation>
    </message>
    <message>
        <source>Whose link</source>
        <translation>Quel lien</translation>
    </message>
    <message>
        <source>Window and tray</source>
        <translation>Fenêtre et zone de notification</translation>
    </message>
    <message>
        <source>With a file</source>
        <translation>Avec un fichier</translation>
    </message>
    <message>
        <source>With a link</source>
        <translation>Avec un lien</translation>
    </message>
    <message>
        <source>With default settings it starts at once; your file is kept beside the new one.</source>
        <translation>Avec les paramètres par défaut il démarre aussitôt&#x202f;; votre fichier est gardé à côté du nouveau.</translation>
    </message>
    <message>
        <source>With the passphrase of the backup that you just made.</source>
        <translation>Avec la phrase secrète de la sauvegarde que vous venez de faire.</translation>
    </message>
    <message>
        <source>With these numbers</source>
        <translation>Avec ces nombres</translation>
    </message>
    <message>
        <source>With this clock</source>
        <translation>Avec cette horloge</translation>
    </message>
    <message>
        <source>Withdraw request</source>
        <translation>Retirer la demande</translation>
    </message>
    <message>
        <source>Without a tray, Causerie ends.</source>
        <translation>Sans zone de notification, Causerie se ferme.</translation>
    </message>
    <message>
        <source>Without it, a notification says only who wrote.</source>
        <translation>Sans cela, une notification dit seulement qui a écrit.</translation>
    </message>
    <message>
        <source>Works without internet. Others there can see that this device is here.</source>
        <translation>Fonctionne sans Internet. Les autres peuvent y voir que cet appareil est là.</translation>
    </message>
    <message>
        <source>Write the passphrase down. Nobody can open the backup without it, nor can we.</source>
        <translation>Notez la phrase secrète. Sans elle, personne ne peut ouvrir la sauvegarde, nous non plus.</translation>
    </message>
    <message>
        <source>Write to them</source>
        <translation>Lui écrire</translation>
    </message>
    <message>
        <source>Write to them…</source>
        <translation>Lui écrire…</translation>
    </message>
    <message>
        <source>Write to {name}</source>
        <translation>Écrire à {name}</translation>
    </message>
    <message>
        <source>Written</source>
        <translation>Écrit</translation>
    </message>
    <message>
        <source>Written by</source>
        <translation>Écrit par</translation>
    </message>
    <message>
        <source>Written on this device</source>
        <translation>Écrit sur cet appareil</translation>
    </message>
    <message>
        <source>Written, by its author&apos;s clock</source>
        <translation>Écrit, à l’horloge de son auteur</translation>
    </message>
    <message numerus="yes">
        <source>Written: %n events, {folder}</source>
        <comment>Written: %n event, {folder}</comment>
        <translation>
            <numerusform>Écrit&#xa0;: %n événement, {folder}</numerusform>
            <numerusform>Écrit&#xa0;: %n événements, {folder}</numerusform>
        </translation>
    </message>
    <message>
        <source>Written: {what}. {folder}</source>
        <translation>Écrit&#xa0;: {what}. {folder}</translation>
    </message>
    <message>
        <source>Wrote {time}</source>
        <translation>A écrit&#xa0;: {time}</translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation>Hier</translation>
    </message>
    <message>
        <source>You</source>
        <translation>Vous</translation>
    </message>
    <message>
        <source>You accepted</source>
        <translation>Vous avez accepté</translation>
    </message>
    <message>
        <source>You allowed every member to let others in</source>
        <translation>Vous avez permis à chaque membre de faire entrer d’autres personnes</translation>
    </message>
    <message>
        <source>You allowed only admins to let others in</source>
        <translation>Vous avez permis aux seuls admins de faire entrer d’autres personnes</translation>
    </message>
    <message>
        <source>You and {name} do not talk</source>
        <translation>Vous et {name} ne discutez pas</translation>
    </message>
    <message>
        <source>You are in a channel with this content topic on another shard. Leave it first.</source>
        <translation>Vous êtes dans un canal avec ce content topic sur un autre shard. Quittez-le d’abord.</translation>
    </message>
    <message>
        <source>You are in no group yet.</source>
        <translation>Vous n’êtes encore dans aucun groupe.</translation>
    </message>
    <message>
        <source>You are in this group already.</source>
        <translation>Vous êtes déjà dans ce groupe.</translation>
    </message>
    <message>
        <source>You are no admin any more: you decided so</source>
        <translation>Vous n’êtes plus admin&#xa0;: vous l’avez décidé</translation>
    </message>
    <message>
        <source>You are no admin any more: {name} decided so</source>
        <translation>Vous n’êtes plus admin&#xa0;: {name} l’a décidé</translation>
    </message>
    <message>
        <source>You are not in it any more. Its messages are removed from this device.</source>
        <translation>Vous n’en faites plus partie. Ses messages sont retirés de cet appareil.</translation>
    </message>
    <message>
        <source>You are not in this group any more</source>
        <translation>Vous ne faites plus partie de ce groupe</translation>
    </message>
    <message>
        <source>You are not in this group any more.</source>
        <translation>Vous ne faites plus partie de ce groupe.</translation>
    </message>
    <message>
        <source>You are not in this group any more. To write to them alone, one of you needs the other&apos;s contact link.</source>
        <translation>Vous n’êtes plus dans ce groupe. Pour vous écrire en privé, l’une des deux personnes doit avoir le lien de contact de l’autre.</translation>
    </message>
    <message>
        <source>You are now called {new}</source>
        <translation>Vous vous appelez maintenant {new}</translation>
    </message>
    <message>
        <source>You are the only one who can let others in or remove anybody: after you nobody can. Make somebody an admin first.</source>
        <translation>Vous seul pouvez faire entrer ou retirer quelqu’un&#xa0;: après vous, personne ne le pourra. Nommez d’abord un admin.</translation>
    </message>
    <message>
        <source>You are there</source>
        <translation>Vous y êtes</translation>
    </message>
    <message>
        <source>You asked them already and they have not answered.</source>
        <translation>Vous avez déjà demandé et n’avez pas encore de réponse.</translation>
    </message>
    <message>
        <source>You asked to talk</source>
        <translation>Vous avez demandé à discuter</translation>
    </message>
    <message>
        <source>You blocked them. Unblock them first, in the conversation.</source>
        <translation>Vous avez bloqué cette personne. Débloquez-la d’abord, dans la conversation.</translation>
    </message>
    <message>
        <source>You blocked this person.</source>
        <translation>Vous avez bloqué cette personne.</translation>
    </message>
    <message>
        <source>You blocked {name}</source>
        <translation>Vous avez bloqué {name}</translation>
    </message>
    <message>
        <source>You blocked {name}. Unblock them first.</source>
        <translation>Vous avez bloqué {name}. Débloquez d’abord cette personne.</translation>
    </message>
    <message>
        <source>You can ask them.</source>
        <translation>Vous pouvez lui demander.</translation>
    </message>
    <message>
        <source>You can read what is here. To come back, ask somebody in the group for a new invitation.</source>
        <translation>Vous pouvez lire ce qui est là. Pour revenir, demandez une nouvelle invitation à quelqu’un du groupe.</translation>
    </message>
    <message>
        <source>You can write once {name} accepts</source>
        <translation>Vous pourrez écrire dès que {name} aura accepté</translation>
    </message>
    <message>
        <source>You changed the group&apos;s picture</source>
        <translation>Vous avez changé l’image du groupe</translation>
    </message>
    <message>
        <source>You compared the safety number: nobody is in between.</source>
        <translation>Vous avez comparé le numéro de sécurité&#xa0;: personne ne s’interpose.</translation>
    </message>
    <message>
        <source>You decide about each person.</source>
        <translation>Vous décidez pour chaque personne.</translation>
    </message>
    <message>
        <source>You declined</source>
        <translation>Vous avez refusé</translation>
    </message>
    <message>
        <source>You declined {name}</source>
        <translation>Vous avez refusé {name}</translation>
    </message>
    <message>
        <source>You deleted a message</source>
        <translation>Vous avez supprimé un message</translation>
    </message>
    <message>
        <source>You deleted this message</source>
        <translation>Vous avez supprimé ce message</translation>
    </message>
    <message>
        <source>You did this to them too often already.</source>
        <translation>Vous l’avez déjà fait trop souvent à cette personne.</translation>
    </message>
    <message>
        <source>You edited: {text}</source>
        <translation>Vous avez modifié&#xa0;: {text}</translation>
    </message>
    <message>
        <source>You ended the link of this group: people come in by invitations</source>
        <translation>Vous avez mis fin au lien de ce groupe&#xa0;: on entre par invitation</translation>
    </message>
    <message>
        <source>You go by the others&apos; clock, {off} ahead of this device&apos;s, until that is set.</source>
        <translation>Vous suivez l’horloge des autres, qui avance de {off} sur celle de cet appareil, jusqu’à ce qu’elle soit réglée.</translation>
    </message>
    <message>
        <source>You go by the others&apos; clock, {off} behind this device&apos;s, until that is set.</source>
        <translation>Vous suivez l’horloge des autres, qui retarde de {off} sur celle de cet appareil, jusqu’à ce qu’elle soit réglée.</translation>
    </message>
    <message>
        <source>You go on as the same person, with everything the backup holds. What was written in groups since then comes back from the others, where they still have it.</source>
        <translation>Vous continuez comme la même personne, avec tout ce que contient la sauvegarde. Ce qui a été écrit depuis dans les groupes revient des autres, s’ils l’ont encore.</translation>
    </message>
    <message>
        <source>You have {version}.</source>
        <translation>Vous avez la {version}.</translation>
    </message>
    <message>
        <source>You invite people and can make some of them admins. Who is removed cannot read what others write once they have heard of it.</source>
        <translation>Vous invitez des gens et pouvez en nommer admins. Qui est retiré ne peut plus lire ce que les autres écrivent dès qu’ils l’ont appris.</translation>
    </message>
    <message>
        <source>You joined</source>
        <translation>Vous avez rejoint le groupe</translation>
    </message>
    <message numerus="yes">
        <source>You lack %n</source>
        <comment>You lack %n</comment>
        <translation>
            <numerusform>Il vous en manque %n</numerusform>
            <numerusform>Il vous en manque %n</numerusform>
        </translation>
    </message>
    <message>
        <source>You lack nothing</source>
        <translation>Il ne vous manque rien</translation>
    </message>
    <message>
        <source>You left</source>
        <translation>Vous avez quitté le groupe</translation>
    </message>
    <message>
        <source>You let {other} in</source>
        <translation>Vous avez fait entrer {other}</translation>
    </message>
    <message>
        <source>You made {other} an admin</source>
        <translation>Vous avez nommé {other} admin</translation>
    </message>
    <message>
        <source>You may ask again. They hear of it a day after they declined, not before.</source>
        <translation>Vous pouvez redemander. La personne l’apprendra un jour après son refus, pas avant.</translation>
    </message>
    <message numerus="yes">
        <source>You muted {name} and %n others.</source>
        <comment>You muted {name} and %n other.</comment>
        <translation>
            <numerusform>Vous avez mis {name} et %n autre en sourdine.</numerusform>
            <numerusform>Vous avez mis {name} et %n autres en sourdine.</numerusform>
        </translation>
    </message>
    <message>
        <source>You muted {name} and {other}.</source>
        <translation>Vous avez mis {name} et {other} en sourdine.</translation>
    </message>
    <message>
        <source>You muted {name}.</source>
        <translation>Vous avez mis {name} en sourdine.</translation>
    </message>
    <message>
        <source>You named the group “{text}”</source>
        <translation>Vous avez nommé le groupe «&#xa0;{text}&#xa0;»</translation>
    </message>
    <message>
        <source>You reacted {emoji} to: {text}</source>
        <translation>Vous avez réagi par {emoji} à&#xa0;: {text}</translation>
    </message>
    <message>
        <source>You removed the topic</source>
        <translation>Vous avez retiré le sujet</translation>
    </message>
    <message>
        <source>You removed {other}</source>
        <translation>Vous avez retiré {other} du groupe</translation>
    </message>
    <message>
        <source>You set the topic: {text}</source>
        <translation>Vous avez fixé le sujet&#xa0;: {text}</translation>
    </message>
    <message>
        <source>You share no group with them.</source>
        <translation>Vous n’avez aucun groupe en commun.</translation>
    </message>
    <message>
        <source>You share no group.</source>
        <translation>Vous n’avez aucun groupe en commun.</translation>
    </message>
    <message>
        <source>You started this group</source>
        <translation>Vous avez créé ce groupe</translation>
    </message>
    <message>
        <source>You stay a member. Only another admin can make you one again.</source>
        <translation>Vous restez membre. Seul un autre admin peut vous nommer à nouveau.</translation>
    </message>
    <message>
        <source>You talk to nobody one to one yet.</source>
        <translation>Vous ne discutez encore avec personne en tête-à-tête.</translation>
    </message>
    <message>
        <source>You talk to them already.</source>
        <translation>Vous discutez déjà avec cette personne.</translation>
    </message>
    <message>
        <source>You two did not come together before. This asks again.</source>
        <translation>Cela n’avait pas abouti entre vous. Ceci demande à nouveau.</translation>
    </message>
    <message>
        <source>You wait to be let into too many groups already. Cancel one first.</source>
        <translation>Vous attendez déjà d’entrer dans trop de groupes. Annulez d’abord une demande.</translation>
    </message>
    <message>
        <source>You were let in with what was written from about {date} on. What was written before that cannot be read here: {who} chose that.</source>
        <translation>On vous a fait entrer avec ce qui a été écrit à partir de cette date environ&#xa0;: {date}. Ce qui a été écrit auparavant ne peut pas être lu ici&#xa0;: ainsi l’a voulu {who}.</translation>
    </message>
    <message>
        <source>You were not given its key</source>
        <translation>Sa clé ne vous a pas été donnée</translation>
    </message>
    <message>
        <source>You withdrew the request</source>
        <translation>Vous avez retiré la demande</translation>
    </message>
    <message>
        <source>You withdrew your request to {name}</source>
        <translation>Vous avez retiré votre demande à {name}</translation>
    </message>
    <message>
        <source>You: </source>
        <translation>Vous&#xa0;: </translation>
    </message>
    <message>
        <source>You: {name}, {word}. Your profile</source>
        <translation>Vous&#xa0;: {name}, {word}. Votre profil</translation>
    </message>
    <message>
        <source>Your GIF, {time}</source>
        <translation>Votre GIF, {time}</translation>
    </message>
    <message>
        <source>Your backup is restored</source>
        <translation>Votre sauvegarde est restaurée</translation>
    </message>
    <message>
        <source>Your contact link</source>
        <translation>Votre lien de contact</translation>
    </message>
    <message>
        <source>Your earlier profile was written by a test version whose format is not used any more. It is kept in {file}; a new one begins here.</source>
        <translation>Votre profil antérieur a été écrit par une version de test dont le format n’est plus utilisé. Il est gardé dans {file}&#x202f;; un nouveau commence ici.</translation>
    </message>
    <message>
        <source>Your fingerprint</source>
        <translation>Votre empreinte</translation>
    </message>
    <message>
        <source>Your fingerprint, to compare</source>
        <translation>Votre empreinte, à comparer</translation>
    </message>
    <message>
        <source>Your identity, all conversations, files, settings and logs go from this device, and Causerie closes. This cannot be undone: without a backup nobody can be you again.</source>
        <translation>Votre identité, toutes les conversations, les fichiers, les réglages et les journaux quittent cet appareil, et Causerie se ferme. C’est irrévocable&#xa0;: sans sauvegarde, personne ne pourra plus être vous.</translation>
    </message>
    <message>
        <source>Your link could not be made: {error}</source>
        <translation>Votre lien n’a pas pu être fait&#xa0;: {error}</translation>
    </message>
    <message>
        <source>Your messages</source>
        <translation>Vos messages</translation>
    </message>
    <message>
        <source>Your messages are carried over to this version</source>
        <translation>Vos messages sont repris dans cette version</translation>
    </message>
    <message>
        <source>Your messages may be refused or held back.</source>
        <translation>Vos messages risquent d’être refusés ou retenus.</translation>
    </message>
    <message>
        <source>Your messages may be refused, and theirs held back.</source>
        <translation>Vos messages risquent d’être refusés, et les leurs retenus.</translation>
    </message>
    <message>
        <source>Your messages on this device are encrypted. Your passphrase opens them.</source>
        <translation>Vos messages sur cet appareil sont chiffrés. Votre phrase secrète les ouvre.</translation>
    </message>
    <message>
        <source>Your messages to each other</source>
        <translation>Vos messages entre vous</translation>
    </message>
    <message>
        <source>Your name there</source>
        <translation>Votre nom là-bas</translation>
    </message>
    <message>
        <source>Your name travels with your messages. You can change it later.</source>
        <translation>Votre nom accompagne vos messages. Vous pourrez le changer plus tard.</translation>
    </message>
    <message>
        <source>Your photo, {time}</source>
        <translation>Votre photo, {time}</translation>
    </message>
    <message>
        <source>Your picture</source>
        <translation>Votre image</translation>
    </message>
    <message>
        <source>Your profile</source>
        <translation>Votre profil</translation>
    </message>
    <message>
        <source>Your reply was not sent, because the conversation is not here any more: {text}</source>
        <translation>Votre réponse n’a pas été envoyée, car la conversation n’est plus ici&#xa0;: {text}</translation>
    </message>
    <message>
        <source>Your reply was not sent, because the window was locked. It waits.</source>
        <translation>Votre réponse n’a pas été envoyée, car la fenêtre était verrouillée. Elle attend.</translation>
    </message>
    <message>
        <source>Your request did not reach {name}</source>
        <translation>Votre demande n’a pas atteint {name}</translation>
    </message>
    <message>
        <source>Your request is on their device. You see here when they answer.</source>
        <translation>Votre demande est sur son appareil. Vous verrez ici la réponse.</translation>
    </message>
    <message>
        <source>Your request reaches them as soon as they can be reached.</source>
        <translation>Votre demande arrivera dès que la personne sera joignable.</translation>
    </message>
    <message>
        <source>Your settings here were kept; those of the backup are in {path}.</source>
        <translation>Vos réglages d’ici sont gardés&#x202f;; ceux de la sauvegarde sont dans {path}.</translation>
    </message>
    <message>
        <source>Your {emoji} went: a message keeps the {most} newest reactions of each person.</source>
        <translation>Votre {emoji} a été retiré&#xa0;: un message garde les {most} réactions les plus récentes de chaque personne.</translation>
    </message>
    <message>
        <source>a list of at most {most} multiaddrs, such as {example}</source>
        <translation>une liste d’au plus {most} multiaddrs, comme {example}</translation>
    </message>
    <message>
        <source>a list of at most {most} multiaddrs, such as {example}, each with its /p2p/ part</source>
        <translation>une liste d’au plus {most} multiaddrs, comme {example}, chacune avec sa partie /p2p/</translation>
    </message>
    <message>
        <source>a web server answers {detail} there and opens no WebSocket</source>
        <translation>un serveur web y répond {detail} et n’ouvre pas de WebSocket</translation>
    </message>
    <message>
        <source>a whole number from {least} to {most}</source>
        <translation>un nombre entier de {least} à {most}</translation>
    </message>
    <message>
        <source>accept the request</source>
        <translation>accepter la demande</translation>
    </message>
    <message>
        <source>add a person</source>
        <translation>ajouter une personne</translation>
    </message>
    <message>
        <source>add the Store</source>
        <translation>ajouter le Store</translation>
    </message>
    <message>
        <source>add the person</source>
        <translation>ajouter la personne</translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;/{part}&quot; is unsupported after the host, where /tcp/PORT is needed</source>
        <translation>adresse «&#xa0;{shown}&#xa0;»&#xa0;: «&#xa0;/{part}&#xa0;» n’est pas pris en charge après l’hôte, où il faut /tcp/PORT</translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;/{part}&quot; is unsupported: after the port there may be one of /ws, /wss and /tls/ws, and then /p2p/PEER</source>
        <translation>adresse «&#xa0;{shown}&#xa0;»&#xa0;: «&#xa0;/{part}&#xa0;» n’est pas pris en charge&#xa0;: après le port peut venir /ws, /wss ou /tls/ws, puis /p2p/PEER</translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;/{part}&quot; is unsupported: nothing may follow the peer id</source>
        <translation>adresse «&#xa0;{shown}&#xa0;»&#xa0;: «&#xa0;/{part}&#xa0;» n’est pas pris en charge&#xa0;: rien ne peut suivre l’identifiant de pair</translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;{part}&quot; is no host name</source>
        <translation>adresse «&#xa0;{shown}&#xa0;»&#xa0;: «&#xa0;{part}&#xa0;» n’est pas un nom d’hôte</translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;{part}&quot; is no peer id</source>
        <translation>adresse «&#xa0;{shown}&#xa0;»&#xa0;: «&#xa0;{part}&#xa0;» n’est pas un identifiant de pair</translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;{part}&quot; is no port (0 to {allowed})</source>
        <translation>adresse «&#xa0;{shown}&#xa0;»&#xa0;: «&#xa0;{part}&#xa0;» n’est pas un port (0 à {allowed})</translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;{part}&quot; is no {allowed} address</source>
        <translation>adresse «&#xa0;{shown}&#xa0;»&#xa0;: «&#xa0;{part}&#xa0;» n’est pas une adresse {allowed}</translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;{part}&quot; is not one of {allowed}</source>
        <translation>adresse «&#xa0;{shown}&#xa0;»&#xa0;: «&#xa0;{part}&#xa0;» n’est pas l’un de {allowed}</translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: &quot;{part}&quot;: an address with a zone is unsupported</source>
        <translation>adresse «&#xa0;{shown}&#xa0;»&#xa0;: «&#xa0;{part}&#xa0;»&#xa0;: une adresse avec une zone n’est pas prise en charge</translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: /p2p/ and the peer id are missing</source>
        <translation>adresse «&#xa0;{shown}&#xa0;»&#xa0;: il manque /p2p/ et l’identifiant de pair</translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: /tls is supported only in /tls/ws, which is the same as /wss</source>
        <translation>adresse «&#xa0;{shown}&#xa0;»&#xa0;: /tls n’est pris en charge que dans /tls/ws, qui équivaut à /wss</translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: /{part} needs a peer id</source>
        <translation>adresse «&#xa0;{shown}&#xa0;»&#xa0;: /{part} demande un identifiant de pair</translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: after the host /tcp/PORT is needed</source>
        <translation>adresse «&#xa0;{shown}&#xa0;»&#xa0;: il faut /tcp/PORT après l’hôte</translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: it has too many parts ({allowed} at most)</source>
        <translation>adresse «&#xa0;{shown}&#xa0;»&#xa0;: elle a trop de parties ({allowed} au plus)</translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: it must not end in &quot;/&quot;</source>
        <translation>adresse «&#xa0;{shown}&#xa0;»&#xa0;: elle ne doit pas finir par «&#xa0;/&#xa0;»</translation>
    </message>
    <message>
        <source>address &quot;{shown}&quot;: it must start with &quot;/&quot;, as in {allowed}</source>
        <translation>adresse «&#xa0;{shown}&#xa0;»&#xa0;: elle doit commencer par «&#xa0;/&#xa0;», comme {allowed}</translation>
    </message>
    <message>
        <source>admin</source>
        <translation>admin</translation>
    </message>
    <message>
        <source>again</source>
        <translation>de nouveau</translation>
    </message>
    <message>
        <source>all there is</source>
        <translation>tout ce qu’il y a</translation>
    </message>
    <message numerus="yes">
        <source>and %n more</source>
        <comment>and %n more</comment>
        <translation>
            <numerusform>et %n autre</numerusform>
            <numerusform>et %n autres</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>and %n service nodes of the group</source>
        <comment>and %n service node of the group</comment>
        <translation>
            <numerusform>et %n nœud de service du groupe</numerusform>
            <numerusform>et %n nœuds de service du groupe</numerusform>
        </translation>
    </message>
    <message>
        <source>and {number} more</source>
        <translation>et {number} de plus</translation>
    </message>
    <message>
        <source>and {number} more here</source>
        <translation>et {number} de plus ici</translation>
    </message>
    <message>
        <source>another program has locked it</source>
        <translation>un autre programme l’a verrouillé</translation>
    </message>
    <message>
        <source>another version of Causerie wrote it</source>
        <translation>une autre version de Causerie l’a écrit</translation>
    </message>
    <message>
        <source>answers a message from before you came, you were not given its key</source>
        <translation>répond à un message d’avant votre arrivée, dont la clé ne vous a pas été donnée</translation>
    </message>
    <message>
        <source>answers a message that is not here yet, Q asks for it</source>
        <translation>répond à un message qui n’est pas encore ici, Q le demande</translation>
    </message>
    <message>
        <source>answers you: {text}</source>
        <translation>vous répond&#xa0;: {text}</translation>
    </message>
    <message>
        <source>answers {name}: {text}</source>
        <translation>répond à {name}&#xa0;: {text}</translation>
    </message>
    <message>
        <source>answers {service} requests wrongly ({detail})</source>
        <translation>répond mal aux requêtes {service} ({detail})</translation>
    </message>
    <message>
        <source>application</source>
        <translation>application</translation>
    </message>
    <message>
        <source>arrived late</source>
        <translation>arrivé en retard</translation>
    </message>
    <message>
        <source>as soon as somebody can be reached</source>
        <translation>dès que quelqu’un est joignable</translation>
    </message>
    <message>
        <source>ask again</source>
        <translation>redemander</translation>
    </message>
    <message>
        <source>ask for it (REQUEST)</source>
        <translation>le demander (REQUEST)</translation>
    </message>
    <message>
        <source>ask for the lost messages</source>
        <translation>demander les messages perdus</translation>
    </message>
    <message>
        <source>ask for the missing messages</source>
        <translation>demander les messages manquants</translation>
    </message>
    <message>
        <source>ask for the quoted message</source>
        <translation>demander le message cité</translation>
    </message>
    <message>
        <source>ask them to talk</source>
        <translation>lui demander une conversation privée</translation>
    </message>
    <message>
        <source>asked again at {time}</source>
        <translation>redemandé à {time}</translation>
    </message>
    <message>
        <source>asked for</source>
        <translation>demandées</translation>
    </message>
    <message>
        <source>asking now</source>
        <translation>demande en cours</translation>
    </message>
    <message>
        <source>auto: reached from the whole network, or not at all if a proxy is set.</source>
        <translation>auto&#xa0;: joignable depuis tout le réseau, ou pas du tout si un proxy est indiqué.</translation>
    </message>
    <message>
        <source>back to {date}</source>
        <translation>jusqu’au {date}</translation>
    </message>
    <message>
        <source>being deleted for everybody</source>
        <translation>en cours de suppression pour tout le monde</translation>
    </message>
    <message>
        <source>beside the mesh</source>
        <translation>à côté du maillage</translation>
    </message>
    <message>
        <source>block the person</source>
        <translation>bloquer la personne</translation>
    </message>
    <message>
        <source>broken rules</source>
        <translation>règles enfreintes</translation>
    </message>
    <message>
        <source>by light push</source>
        <translation>par light push</translation>
    </message>
    <message>
        <source>by relay</source>
        <translation>par relais</translation>
    </message>
    <message>
        <source>by relay and light push</source>
        <translation>par relais et light push</translation>
    </message>
    <message>
        <source>bytes</source>
        <translation>octets</translation>
    </message>
    <message>
        <source>came</source>
        <translation>arrivées</translation>
    </message>
    <message>
        <source>cancel the file</source>
        <translation>annuler le fichier</translation>
    </message>
    <message>
        <source>cannot be reached ({why})</source>
        <translation>n’est pas joignable ({why})</translation>
    </message>
    <message>
        <source>cannot be used ({why})</source>
        <translation>ne peut pas être utilisé ({why})</translation>
    </message>
    <message>
        <source>change a setting</source>
        <translation>changer un paramètre</translation>
    </message>
    <message>
        <source>change the group</source>
        <translation>changer le groupe</translation>
    </message>
    <message>
        <source>change the passphrase</source>
        <translation>changer la phrase secrète</translation>
    </message>
    <message>
        <source>change who may let others in</source>
        <translation>changer qui peut faire entrer d’autres personnes</translation>
    </message>
    <message>
        <source>change who may what</source>
        <translation>changer qui peut quoi</translation>
    </message>
    <message>
        <source>channel with a shared key</source>
        <translation>canal à clé partagée</translation>
    </message>
    <message>
        <source>check the clock</source>
        <translation>vérifier l’horloge</translation>
    </message>
    <message>
        <source>choose a folder</source>
        <translation>choisir un dossier</translation>
    </message>
    <message>
        <source>close the window</source>
        <translation>fermer la fenêtre</translation>
    </message>
    <message>
        <source>cluster not said</source>
        <translation>cluster non indiqué</translation>
    </message>
    <message>
        <source>cluster {number}</source>
        <translation>cluster {number}</translation>
    </message>
    <message>
        <source>code: {text}, end of code</source>
        <translation>code&#xa0;: {text}, fin du code</translation>
    </message>
    <message>
        <source>connected through {number} service nodes</source>
        <translation>connecté par {number} nœuds de service</translation>
    </message>
    <message>
        <source>connected to one peer: everything depends on it</source>
        <translation>connecté à un seul pair&#xa0;: tout dépend de lui</translation>
    </message>
    <message>
        <source>connected to {number} peers</source>
        <translation>connecté à {number} pairs</translation>
    </message>
    <message>
        <source>connected to {number} peers, none passes messages on yet</source>
        <translation>connecté à {number} pairs, aucun ne transmet encore de messages</translation>
    </message>
    <message>
        <source>copies</source>
        <translation>copies</translation>
    </message>
    <message>
        <source>copy the channel&apos;s link</source>
        <translation>copier le lien du canal</translation>
    </message>
    <message>
        <source>create the group</source>
        <translation>créer le groupe</translation>
    </message>
    <message>
        <source>cut off</source>
        <translation>coupé</translation>
    </message>
    <message>
        <source>days</source>
        <translation>jours</translation>
    </message>
    <message>
        <source>decline the request</source>
        <translation>refuser la demande</translation>
    </message>
    <message>
        <source>delete the message</source>
        <translation>supprimer le message</translation>
    </message>
    <message>
        <source>delete the message for everybody</source>
        <translation>supprimer le message pour tout le monde</translation>
    </message>
    <message>
        <source>dialled by the peer</source>
        <translation>ouverte par le pair</translation>
    </message>
    <message>
        <source>dialled by this device</source>
        <translation>ouverte par cet appareil</translation>
    </message>
    <message>
        <source>does not answer {service} requests</source>
        <translation>ne répond pas aux requêtes {service}</translation>
    </message>
    <message>
        <source>edit the message</source>
        <translation>modifier le message</translation>
    </message>
    <message>
        <source>edited</source>
        <translation>modifié</translation>
    </message>
    <message>
        <source>edited {time}</source>
        <translation>modifié {time}</translation>
    </message>
    <message>
        <source>empty, or a SOCKS5 proxy by its IP address, such as &quot;{example}&quot;</source>
        <translation>vide, ou un proxy SOCKS5 par son adresse IP, comme &quot;{example}&quot;</translation>
    </message>
    <message>
        <source>empty, or the 43 characters that another member of the test group was shown</source>
        <translation>vide, ou les 43 caractères qui ont été montrés à un autre membre du groupe de test</translation>
    </message>
    <message>
        <source>empty, or the full path of a folder</source>
        <translation>vide, ou le chemin complet d’un dossier</translation>
    </message>
    <message>
        <source>erase this profile</source>
        <translation>effacer ce profil</translation>
    </message>
    <message>
        <source>error: {text}</source>
        <translation>erreur&#xa0;: {text}</translation>
    </message>
    <message>
        <source>everything depends on one service node</source>
        <translation>tout dépend d’un seul nœud de service</translation>
    </message>
    <message>
        <source>export</source>
        <translation>exporter</translation>
    </message>
    <message>
        <source>export recorded deliveries</source>
        <translation>exporter les remises notées</translation>
    </message>
    <message>
        <source>export the conversation</source>
        <translation>exporter la conversation</translation>
    </message>
    <message>
        <source>export the figures</source>
        <translation>exporter les chiffres</translation>
    </message>
    <message>
        <source>fetch earlier messages</source>
        <translation>récupérer des messages antérieurs</translation>
    </message>
    <message>
        <source>fetch history</source>
        <translation>récupérer l’historique</translation>
    </message>
    <message>
        <source>fetch the file</source>
        <translation>récupérer le fichier</translation>
    </message>
    <message>
        <source>filter</source>
        <translation>filter</translation>
    </message>
    <message>
        <source>find the days with messages</source>
        <translation>trouver les jours qui ont des messages</translation>
    </message>
    <message>
        <source>former</source>
        <translation>ancien membre</translation>
    </message>
    <message>
        <source>forward the message</source>
        <translation>transférer le message</translation>
    </message>
    <message>
        <source>from {name}, as is claimed</source>
        <translation>de {name}, à ce qu’on affirme</translation>
    </message>
    <message>
        <source>from {name}: {what}</source>
        <translation>de {name}&#xa0;: {what}</translation>
    </message>
    <message>
        <source>given up</source>
        <translation>abandonné</translation>
    </message>
    <message>
        <source>given up {moment}</source>
        <translation>abandonné&#xa0;: {moment}</translation>
    </message>
    <message>
        <source>go to a date</source>
        <translation>aller à une date</translation>
    </message>
    <message>
        <source>half</source>
        <translation>la moitié</translation>
    </message>
    <message>
        <source>has closed the connection</source>
        <translation>a fermé la connexion</translation>
    </message>
    <message>
        <source>has your message of {time}</source>
        <translation>a votre message ({time})</translation>
    </message>
    <message>
        <source>has your newest message</source>
        <translation>a votre message le plus récent</translation>
    </message>
    <message>
        <source>held as a whole by them</source>
        <translation>détenu en entier par l’autre personne</translation>
    </message>
    <message>
        <source>held as a whole by {number} of {others}</source>
        <translation>détenu en entier par {number} sur {others}</translation>
    </message>
    <message>
        <source>held aside</source>
        <translation>mis de côté</translation>
    </message>
    <message>
        <source>here</source>
        <translation>ici</translation>
    </message>
    <message>
        <source>here, waiting</source>
        <translation>ici, en attente</translation>
    </message>
    <message>
        <source>highest</source>
        <translation>le plus haut</translation>
    </message>
    <message>
        <source>holds it</source>
        <translation>le détient</translation>
    </message>
    <message>
        <source>id {id}</source>
        <translation>identifiant {id}</translation>
    </message>
    <message>
        <source>in the mesh</source>
        <translation>dans le maillage</translation>
    </message>
    <message>
        <source>in {group}</source>
        <translation>dans {group}</translation>
    </message>
    <message numerus="yes">
        <source>in {group} and %n more</source>
        <comment>in {group} and %n more</comment>
        <translation>
            <numerusform>dans {group} et %n autre</numerusform>
            <numerusform>dans {group} et %n autres</numerusform>
        </translation>
    </message>
    <message>
        <source>info: {text}</source>
        <translation>info&#xa0;: {text}</translation>
    </message>
    <message>
        <source>invalid messages</source>
        <translation>messages non valides</translation>
    </message>
    <message>
        <source>is slow to answer</source>
        <translation>tarde à répondre</translation>
    </message>
    <message>
        <source>it accepts messages too slowly</source>
        <translation>il accepte les messages trop lentement</translation>
    </message>
    <message>
        <source>it answers with an unknown status</source>
        <translation>il répond par un statut inconnu</translation>
    </message>
    <message>
        <source>it answers wrongly: {detail}</source>
        <translation>il répond mal&#xa0;: {detail}</translation>
    </message>
    <message>
        <source>it breaks the protocol ({detail})</source>
        <translation>il enfreint le protocole ({detail})</translation>
    </message>
    <message>
        <source>it cannot be opened</source>
        <translation>il ne peut pas être ouvert</translation>
    </message>
    <message>
        <source>it cannot be reached</source>
        <translation>il n’est pas joignable</translation>
    </message>
    <message>
        <source>it cannot look for single messages</source>
        <translation>il ne peut pas chercher des messages un par un</translation>
    </message>
    <message>
        <source>it did not answer any more</source>
        <translation>il ne répondait plus</translation>
    </message>
    <message numerus="yes">
        <source>it did not have %n messages that others had</source>
        <comment>it did not have %n message that others had</comment>
        <translation>
            <numerusform>il n’avait pas %n message que d’autres avaient</numerusform>
            <numerusform>il n’avait pas %n messages que d’autres avaient</numerusform>
        </translation>
    </message>
    <message>
        <source>it does not answer in time</source>
        <translation>il ne répond pas à temps</translation>
    </message>
    <message>
        <source>it does not say</source>
        <translation>il ne le dit pas</translation>
    </message>
    <message>
        <source>it forgets where its pages were</source>
        <translation>il oublie où en étaient ses pages</translation>
    </message>
    <message>
        <source>it gave a message that does not bear its hash</source>
        <translation>il a donné un message qui ne correspond pas à son empreinte de hachage</translation>
    </message>
    <message>
        <source>it gave messages of another time</source>
        <translation>il a donné des messages d’une autre période</translation>
    </message>
    <message>
        <source>it gave messages that were not asked for</source>
        <translation>il a donné des messages qui n’étaient pas demandés</translation>
    </message>
    <message>
        <source>it gave messages without content</source>
        <translation>il a donné des messages sans contenu</translation>
    </message>
    <message>
        <source>it gave way to another peer while this device was full</source>
        <translation>il a cédé la place à un autre pair alors que cet appareil était au complet</translation>
    </message>
    <message>
        <source>it has more pages than are read at once</source>
        <translation>il a plus de pages qu’on n’en lit à la fois</translation>
    </message>
    <message>
        <source>it has nothing of your conversations</source>
        <translation>il n’a rien de vos conversations</translation>
    </message>
    <message>
        <source>it is cut off on purpose, by the fault bench</source>
        <translation>il est coupé exprès, par le banc de pannes</translation>
    </message>
    <message>
        <source>it is damaged</source>
        <translation>il est abîmé</translation>
    </message>
    <message>
        <source>it is gone</source>
        <translation>il n’est plus là</translation>
    </message>
    <message>
        <source>it is in cluster {theirs}, this device in cluster {ours}</source>
        <translation>il est dans le cluster {theirs}, cet appareil dans le cluster {ours}</translation>
    </message>
    <message>
        <source>it is no delivery log</source>
        <translation>ce n’est pas un journal des remises</translation>
    </message>
    <message>
        <source>it is not connected</source>
        <translation>il n’est pas connecté</translation>
    </message>
    <message>
        <source>it keeps no messages for others</source>
        <translation>il ne garde pas de messages pour les autres</translation>
    </message>
    <message>
        <source>it offers no {services}</source>
        <translation>il n’offre pas {services}</translation>
    </message>
    <message>
        <source>it refuses to answer</source>
        <translation>il refuse de répondre</translation>
    </message>
    <message>
        <source>it refuses: {detail}</source>
        <translation>il refuse&#xa0;: {detail}</translation>
    </message>
    <message>
        <source>it says that it is asked too often</source>
        <translation>il dit être interrogé trop souvent</translation>
    </message>
    <message>
        <source>it says that it is out of service</source>
        <translation>il dit être hors service</translation>
    </message>
    <message>
        <source>it speaks none of the protocols that are needed</source>
        <translation>il ne parle aucun des protocoles nécessaires</translation>
    </message>
    <message>
        <source>it took no more data</source>
        <translation>il n’acceptait plus de données</translation>
    </message>
    <message>
        <source>it went away before it said who it is</source>
        <translation>il est parti avant de dire qui il est</translation>
    </message>
    <message>
        <source>it {problem}</source>
        <translation>il {problem}</translation>
    </message>
    <message>
        <source>its address cannot be used</source>
        <translation>son adresse ne peut pas être utilisée</translation>
    </message>
    <message>
        <source>its answer cannot be read ({reason})</source>
        <translation>sa réponse ne peut pas être lue ({reason})</translation>
    </message>
    <message>
        <source>its answer is larger than allowed</source>
        <translation>sa réponse est plus grande que permis</translation>
    </message>
    <message>
        <source>its certificate is not valid ({detail})</source>
        <translation>son certificat n’est pas valable ({detail})</translation>
    </message>
    <message>
        <source>its clock agrees with the messages</source>
        <translation>son horloge s’accorde avec les messages</translation>
    </message>
    <message>
        <source>its clock is not told</source>
        <translation>son horloge n’est pas indiquée</translation>
    </message>
    <message>
        <source>its clock is {duration} ahead of the messages</source>
        <translation>son horloge avance de {duration} sur les messages</translation>
    </message>
    <message>
        <source>its clock is {duration} behind the messages</source>
        <translation>son horloge retarde de {duration} sur les messages</translation>
    </message>
    <message>
        <source>its filter says so, which can err</source>
        <translation>son filtre le dit, ce qui peut être faux</translation>
    </message>
    <message>
        <source>its name is too long for a proxy</source>
        <translation>son nom est trop long pour un proxy</translation>
    </message>
    <message>
        <source>its oldest message of yours is from {date}</source>
        <translation>son plus ancien message de vos conversations date du {date}</translation>
    </message>
    <message>
        <source>its pages begin again and again</source>
        <translation>ses pages recommencent sans cesse</translation>
    </message>
    <message>
        <source>its pages bring nothing new and never end</source>
        <translation>ses pages n’apportent rien de nouveau et ne finissent jamais</translation>
    </message>
    <message>
        <source>its pages cannot be followed</source>
        <translation>ses pages ne peuvent pas être suivies</translation>
    </message>
    <message>
        <source>its pages do not go on</source>
        <translation>ses pages ne continuent pas</translation>
    </message>
    <message>
        <source>join a group</source>
        <translation>rejoindre un groupe</translation>
    </message>
    <message>
        <source>join the group</source>
        <translation>rejoindre le groupe</translation>
    </message>
    <message>
        <source>known here</source>
        <translation>connus ici</translation>
    </message>
    <message>
        <source>label the channel</source>
        <translation>étiqueter le canal</translation>
    </message>
    <message>
        <source>last asked {time}</source>
        <translation>dernière requête&#xa0;: {time}</translation>
    </message>
    <message>
        <source>last heard {time}</source>
        <translation>dernier signe&#xa0;: {time}</translation>
    </message>
    <message>
        <source>late by {time}</source>
        <translation>en retard de {time}</translation>
    </message>
    <message>
        <source>leave the channel</source>
        <translation>quitter le canal</translation>
    </message>
    <message>
        <source>leave the group</source>
        <translation>quitter le groupe</translation>
    </message>
    <message>
        <source>let files go</source>
        <translation>libérer des fichiers</translation>
    </message>
    <message>
        <source>let them in</source>
        <translation>faire entrer la personne</translation>
    </message>
    <message>
        <source>lightpush</source>
        <translation>lightpush</translation>
    </message>
    <message>
        <source>list what was shared</source>
        <translation>lister ce qui a été partagé</translation>
    </message>
    <message>
        <source>look for signs of two stories</source>
        <translation>chercher des signes de deux versions</translation>
    </message>
    <message>
        <source>look into the message</source>
        <translation>inspecter le message</translation>
    </message>
    <message>
        <source>look who sends unusually much</source>
        <translation>voir qui envoie plus que d’ordinaire</translation>
    </message>
    <message>
        <source>lost</source>
        <translation>perdu</translation>
    </message>
    <message>
        <source>lowest</source>
        <translation>le plus bas</translation>
    </message>
    <message>
        <source>make a backup</source>
        <translation>faire une sauvegarde</translation>
    </message>
    <message>
        <source>make a group</source>
        <translation>créer un groupe</translation>
    </message>
    <message>
        <source>make an invitation</source>
        <translation>créer une invitation</translation>
    </message>
    <message>
        <source>make your identity</source>
        <translation>créer votre identité</translation>
    </message>
    <message>
        <source>many peers at one address</source>
        <translation>beaucoup de pairs à une même adresse</translation>
    </message>
    <message>
        <source>marked as unread</source>
        <translation>marquée comme non lue</translation>
    </message>
    <message>
        <source>maybe</source>
        <translation>peut-être</translation>
    </message>
    <message>
        <source>measure the space</source>
        <translation>mesurer l’espace</translation>
    </message>
    <message>
        <source>mentions you</source>
        <translation>vous mentionne</translation>
    </message>
    <message>
        <source>message</source>
        <translation>message</translation>
    </message>
    <message>
        <source>messages</source>
        <translation>messages</translation>
    </message>
    <message>
        <source>messages can be received but not sent</source>
        <translation>les messages peuvent être reçus mais pas envoyés</translation>
    </message>
    <message>
        <source>messages can be sent but not received</source>
        <translation>les messages peuvent être envoyés mais pas reçus</translation>
    </message>
    <message>
        <source>messages that it brought first</source>
        <translation>messages qu’il a apportés le premier</translation>
    </message>
    <message>
        <source>missing</source>
        <translation>manquant</translation>
    </message>
    <message>
        <source>missing here</source>
        <translation>manque ici</translation>
    </message>
    <message>
        <source>missing {since}</source>
        <translation>manque {since}</translation>
    </message>
    <message>
        <source>more than counts</source>
        <translation>au-delà de ce qui compte</translation>
    </message>
    <message>
        <source>move the Store</source>
        <translation>déplacer le Store</translation>
    </message>
    <message>
        <source>mute the conversation</source>
        <translation>mettre la conversation en sourdine</translation>
    </message>
    <message>
        <source>mute the member</source>
        <translation>mettre le membre en sourdine</translation>
    </message>
    <message>
        <source>muted</source>
        <translation>en sourdine</translation>
    </message>
    <message>
        <source>muted {until}</source>
        <translation>en sourdine {until}</translation>
    </message>
    <message>
        <source>named it later</source>
        <translation>l’a nommé ensuite</translation>
    </message>
    <message>
        <source>names it in {id}</source>
        <translation>le nomme dans {id}</translation>
    </message>
    <message>
        <source>never: given up</source>
        <translation>jamais&#xa0;: abandonné</translation>
    </message>
    <message>
        <source>new request</source>
        <translation>nouvelle demande</translation>
    </message>
    <message>
        <source>next try in {minutes} min</source>
        <translation>prochain essai dans {minutes}&#xa0;min</translation>
    </message>
    <message>
        <source>next try in {seconds} s</source>
        <translation>prochain essai dans {seconds}&#xa0;s</translation>
    </message>
    <message>
        <source>no Store answered to the end; of the one that came furthest: {why}</source>
        <translation>aucun Store n’a répondu jusqu’au bout&#x202f;; de celui qui est allé le plus loin&#xa0;: {why}</translation>
    </message>
    <message>
        <source>no answer in {seconds:g} s</source>
        <translation>pas de réponse en {seconds:g}&#xa0;s</translation>
    </message>
    <message>
        <source>no relay</source>
        <translation>ne relaie pas</translation>
    </message>
    <message>
        <source>no service node answers</source>
        <translation>aucun nœud de service ne répond</translation>
    </message>
    <message>
        <source>no service node is set, and without relaying one is needed</source>
        <translation>aucun nœud de service n’est indiqué, et sans relais il en faut un</translation>
    </message>
    <message>
        <source>no service node serves this device</source>
        <translation>aucun nœud de service ne sert cet appareil</translation>
    </message>
    <message>
        <source>no sign</source>
        <translation>aucun signe</translation>
    </message>
    <message>
        <source>no sign yet</source>
        <translation>aucun signe pour l’instant</translation>
    </message>
    <message>
        <source>nobody is connected</source>
        <translation>personne n’est connecté</translation>
    </message>
    <message>
        <source>nobody is proved here</source>
        <translation>personne n’est prouvé ici</translation>
    </message>
    <message>
        <source>nobody took it</source>
        <translation>personne ne l’a pris</translation>
    </message>
    <message>
        <source>nobody used the connection</source>
        <translation>personne n’utilisait la connexion</translation>
    </message>
    <message>
        <source>none</source>
        <translation>aucun</translation>
    </message>
    <message>
        <source>none is known</source>
        <translation>aucun n’est connu</translation>
    </message>
    <message>
        <source>none: nothing is left to send</source>
        <translation>aucun&#xa0;: il ne reste rien à envoyer</translation>
    </message>
    <message>
        <source>none; Tor&apos;s is socks5://127.0.0.1:9050</source>
        <translation>aucun&#x202f;; celui de Tor est socks5://127.0.0.1:9050</translation>
    </message>
    <message>
        <source>not heard since the start</source>
        <translation>aucun signe depuis le démarrage</translation>
    </message>
    <message>
        <source>not held by all</source>
        <translation>pas chez tous</translation>
    </message>
    <message>
        <source>not held by all yet</source>
        <translation>pas encore chez tous</translation>
    </message>
    <message>
        <source>not here</source>
        <translation>pas ici</translation>
    </message>
    <message>
        <source>not kept any more</source>
        <translation>n’est plus gardé</translation>
    </message>
    <message>
        <source>not known</source>
        <translation>inconnu</translation>
    </message>
    <message>
        <source>not measured yet</source>
        <translation>pas encore mesuré</translation>
    </message>
    <message>
        <source>not on this device</source>
        <translation>pas sur cet appareil</translation>
    </message>
    <message>
        <source>not recorded</source>
        <translation>non enregistré</translation>
    </message>
    <message>
        <source>not sent</source>
        <translation>non envoyé</translation>
    </message>
    <message>
        <source>not sent yet</source>
        <translation>pas encore envoyé</translation>
    </message>
    <message>
        <source>not since the start</source>
        <translation>pas depuis le démarrage</translation>
    </message>
    <message>
        <source>not started</source>
        <translation>non démarré</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>rien</translation>
    </message>
    <message>
        <source>nothing counts for or against it</source>
        <translation>rien ne compte pour ni contre lui</translation>
    </message>
    <message>
        <source>nothing just now</source>
        <translation>rien pour l’instant</translation>
    </message>
    <message>
        <source>nothing to measure yet</source>
        <translation>rien à mesurer encore</translation>
    </message>
    <message>
        <source>now in their place</source>
        <translation>à leur place</translation>
    </message>
    <message>
        <source>number {first}</source>
        <translation>numéro {first}</translation>
    </message>
    <message>
        <source>numbers {first} to {last}</source>
        <translation>numéros {first} à {last}</translation>
    </message>
    <message>
        <source>offer (OFFER)</source>
        <translation>proposer (OFFER)</translation>
    </message>
    <message>
        <source>offers no {services}</source>
        <translation>n’offre pas {services}</translation>
    </message>
    <message>
        <source>on the wire</source>
        <translation>sur le réseau</translation>
    </message>
    <message>
        <source>one is made when you begin to record</source>
        <translation>une clé est créée quand vous commencez à noter</translation>
    </message>
    <message>
        <source>online</source>
        <translation>en ligne</translation>
    </message>
    <message>
        <source>only asks</source>
        <translation>demande seulement</translation>
    </message>
    <message>
        <source>only here</source>
        <translation>seulement ici</translation>
    </message>
    <message>
        <source>only here so far</source>
        <translation>pour l’instant ici seulement</translation>
    </message>
    <message>
        <source>open</source>
        <translation>ouvert</translation>
    </message>
    <message>
        <source>open a channel</source>
        <translation>ouvrir un canal</translation>
    </message>
    <message>
        <source>open channel, not encrypted</source>
        <translation>canal ouvert, non chiffré</translation>
    </message>
    <message>
        <source>open the address</source>
        <translation>ouvrir l’adresse</translation>
    </message>
    <message>
        <source>open the channel</source>
        <translation>ouvrir le canal</translation>
    </message>
    <message>
        <source>open the file</source>
        <translation>ouvrir le fichier</translation>
    </message>
    <message>
        <source>open the message</source>
        <translation>ouvrir le message</translation>
    </message>
    <message>
        <source>other topics</source>
        <translation>autres sujets</translation>
    </message>
    <message>
        <source>others may name it, too</source>
        <translation>d’autres le nomment peut-être aussi</translation>
    </message>
    <message>
        <source>owner</source>
        <translation>créateur</translation>
    </message>
    <message>
        <source>pause the file</source>
        <translation>mettre le fichier en pause</translation>
    </message>
    <message>
        <source>paused</source>
        <translation>en pause</translation>
    </message>
    <message>
        <source>picture</source>
        <translation>image</translation>
    </message>
    <message>
        <source>proxy &quot;{shown}&quot;: &quot;{part}&quot; is no IP address; a name would have to be looked up beside the proxy</source>
        <translation>proxy «&#xa0;{shown}&#xa0;»&#xa0;: «&#xa0;{part}&#xa0;» n’est pas une adresse IP&#x202f;; il faudrait chercher un nom sans passer par le proxy</translation>
    </message>
    <message>
        <source>proxy &quot;{shown}&quot;: &quot;{part}&quot; is no kind of proxy known here, only socks5</source>
        <translation>proxy «&#xa0;{shown}&#xa0;»&#xa0;: «&#xa0;{part}&#xa0;» n’est pas un type de proxy connu ici, seul socks5 l’est</translation>
    </message>
    <message>
        <source>proxy &quot;{shown}&quot;: &quot;{part}&quot; is no port (1 to {allowed})</source>
        <translation>proxy «&#xa0;{shown}&#xa0;»&#xa0;: «&#xa0;{part}&#xa0;» n’est pas un port (1 à {allowed})</translation>
    </message>
    <message>
        <source>proxy &quot;{shown}&quot;: it is longer than {allowed} characters</source>
        <translation>proxy «&#xa0;{shown}&#xa0;»&#xa0;: il dépasse {allowed} caractères</translation>
    </message>
    <message>
        <source>proxy &quot;{shown}&quot;: it must look like {allowed} or socks5://USER:PASSWORD@127.0.0.1:9050 (in a name or password write @ as %40, : as %3A and / as %2F)</source>
        <translation>proxy «&#xa0;{shown}&#xa0;»&#xa0;: il doit ressembler à {allowed} ou à socks5://USER:PASSWORD@127.0.0.1:9050 (dans un nom ou un mot de passe, écrivez @ comme&#xa0;%40,&#xa0;: comme&#xa0;%3A et / comme&#xa0;%2F)</translation>
    </message>
    <message>
        <source>proxy &quot;{shown}&quot;: the port is missing, as in :9050</source>
        <translation>proxy «&#xa0;{shown}&#xa0;»&#xa0;: il manque le port, comme dans :9050</translation>
    </message>
    <message>
        <source>proxy &quot;{shown}&quot;: user and password must both be there, with 1 to {allowed} bytes each</source>
        <translation>proxy «&#xa0;{shown}&#xa0;»&#xa0;: il faut un utilisateur et un mot de passe, de 1 à {allowed} octets chacun</translation>
    </message>
    <message>
        <source>quote: {text}, end of quote</source>
        <translation>citation&#xa0;: {text}, fin de la citation</translation>
    </message>
    <message>
        <source>read how delivery goes</source>
        <translation>lire l’état de la livraison</translation>
    </message>
    <message>
        <source>read the code</source>
        <translation>lire le code</translation>
    </message>
    <message>
        <source>read the conversation</source>
        <translation>lire la conversation</translation>
    </message>
    <message>
        <source>read the file</source>
        <translation>lire le fichier</translation>
    </message>
    <message>
        <source>read the picture</source>
        <translation>lire l’image</translation>
    </message>
    <message>
        <source>record deliveries</source>
        <translation>noter les remises</translation>
    </message>
    <message>
        <source>refused a message ({detail})</source>
        <translation>a refusé un message ({detail})</translation>
    </message>
    <message>
        <source>refuses subscriptions ({detail})</source>
        <translation>refuse les abonnements ({detail})</translation>
    </message>
    <message>
        <source>relays</source>
        <translation>relaie</translation>
    </message>
    <message>
        <source>remember what was read</source>
        <translation>retenir ce qui a été lu</translation>
    </message>
    <message>
        <source>remember whom you compared</source>
        <translation>retenir qui vous avez comparé</translation>
    </message>
    <message>
        <source>remove the Store</source>
        <translation>retirer le Store</translation>
    </message>
    <message>
        <source>remove the passphrase</source>
        <translation>supprimer la phrase secrète</translation>
    </message>
    <message>
        <source>remove the person</source>
        <translation>retirer la personne</translation>
    </message>
    <message>
        <source>rename the person</source>
        <translation>renommer la personne</translation>
    </message>
    <message>
        <source>repairs</source>
        <translation>réparations</translation>
    </message>
    <message>
        <source>repairs, history</source>
        <translation>réparations, historique</translation>
    </message>
    <message>
        <source>report a problem</source>
        <translation>signaler un problème</translation>
    </message>
    <message>
        <source>restore a backup</source>
        <translation>restaurer une sauvegarde</translation>
    </message>
    <message>
        <source>revoke the invitation</source>
        <translation>révoquer l’invitation</translation>
    </message>
    <message>
        <source>said before {moment}</source>
        <translation>dit avant&#xa0;: {moment}</translation>
    </message>
    <message>
        <source>save the draft</source>
        <translation>enregistrer le brouillon</translation>
    </message>
    <message>
        <source>save the file</source>
        <translation>enregistrer le fichier</translation>
    </message>
    <message>
        <source>save the report</source>
        <translation>enregistrer le rapport</translation>
    </message>
    <message>
        <source>save your profile</source>
        <translation>enregistrer votre profil</translation>
    </message>
    <message>
        <source>says so, unproved</source>
        <translation>le dit, sans preuve</translation>
    </message>
    <message>
        <source>says {moment}</source>
        <translation>dit {moment}</translation>
    </message>
    <message>
        <source>search</source>
        <translation>rechercher</translation>
    </message>
    <message>
        <source>see who has what</source>
        <translation>voir qui a quoi</translation>
    </message>
    <message>
        <source>send it (MESSAGE)</source>
        <translation>l’envoyer (MESSAGE)</translation>
    </message>
    <message>
        <source>send the message</source>
        <translation>envoyer le message</translation>
    </message>
    <message>
        <source>send the message again</source>
        <translation>renvoyer le message</translation>
    </message>
    <message>
        <source>send the reaction</source>
        <translation>envoyer la réaction</translation>
    </message>
    <message>
        <source>send the reply</source>
        <translation>envoyer la réponse</translation>
    </message>
    <message>
        <source>sent and received since the start</source>
        <translation>envoyé et reçu depuis le démarrage</translation>
    </message>
    <message>
        <source>sent it again for somebody</source>
        <translation>l’a renvoyé pour quelqu’un</translation>
    </message>
    <message>
        <source>sent to others</source>
        <translation>envoyées à d’autres</translation>
    </message>
    <message>
        <source>set bits</source>
        <translation>bits à 1</translation>
    </message>
    <message>
        <source>set the clock</source>
        <translation>régler l’horloge</translation>
    </message>
    <message>
        <source>set the passphrase</source>
        <translation>définir la phrase secrète</translation>
    </message>
    <message>
        <source>set up daily backups</source>
        <translation>régler les sauvegardes quotidiennes</translation>
    </message>
    <message>
        <source>shared key</source>
        <translation>clé partagée</translation>
    </message>
    <message>
        <source>show a picture</source>
        <translation>afficher une image</translation>
    </message>
    <message>
        <source>show both messages</source>
        <translation>afficher les deux messages</translation>
    </message>
    <message>
        <source>show how it stands</source>
        <translation>montrer où en est la demande</translation>
    </message>
    <message>
        <source>show how it works</source>
        <translation>afficher comment ça marche</translation>
    </message>
    <message>
        <source>show the Stores</source>
        <translation>afficher les Stores</translation>
    </message>
    <message>
        <source>show the channel</source>
        <translation>afficher le canal</translation>
    </message>
    <message>
        <source>show the conversation</source>
        <translation>afficher la conversation</translation>
    </message>
    <message>
        <source>show the earlier versions</source>
        <translation>afficher les versions antérieures</translation>
    </message>
    <message>
        <source>show the key</source>
        <translation>afficher la clé</translation>
    </message>
    <message>
        <source>show the keys</source>
        <translation>afficher les raccourcis</translation>
    </message>
    <message>
        <source>show the member&apos;s messages</source>
        <translation>afficher les messages du membre</translation>
    </message>
    <message>
        <source>show the messages</source>
        <translation>afficher les messages</translation>
    </message>
    <message>
        <source>show the network</source>
        <translation>afficher le réseau</translation>
    </message>
    <message>
        <source>show the picture</source>
        <translation>afficher l’image</translation>
    </message>
    <message>
        <source>show the safety number</source>
        <translation>afficher le numéro de sécurité</translation>
    </message>
    <message>
        <source>show what is known of the message</source>
        <translation>afficher ce qu’on sait du message</translation>
    </message>
    <message>
        <source>show where the space goes</source>
        <translation>afficher où va l’espace</translation>
    </message>
    <message>
        <source>show who holds it</source>
        <translation>afficher qui le détient</translation>
    </message>
    <message>
        <source>show who reacted</source>
        <translation>afficher qui a réagi</translation>
    </message>
    <message>
        <source>show your profile</source>
        <translation>afficher votre profil</translation>
    </message>
    <message>
        <source>shows all keys.</source>
        <translation>affiche tous les raccourcis.</translation>
    </message>
    <message>
        <source>since {day}, {time}</source>
        <translation>depuis&#xa0;: {day}, {time}</translation>
    </message>
    <message>
        <source>since {time}</source>
        <translation>depuis {time}</translation>
    </message>
    <message>
        <source>slowest 5 %</source>
        <translation>les 5&#xa0;% les plus lents</translation>
    </message>
    <message>
        <source>slowest 5 %: {time}</source>
        <translation>5&#x202f;% les plus lents&#xa0;: {time}</translation>
    </message>
    <message>
        <source>somebody</source>
        <translation>quelqu’un</translation>
    </message>
    <message>
        <source>somebody unknown</source>
        <translation>un inconnu</translation>
    </message>
    <message>
        <source>somebody who left</source>
        <translation>quelqu’un qui est parti</translation>
    </message>
    <message>
        <source>state</source>
        <translation>état</translation>
    </message>
    <message>
        <source>state, refused</source>
        <translation>état, refusés</translation>
    </message>
    <message>
        <source>stop fetching history</source>
        <translation>arrêter de récupérer l’historique</translation>
    </message>
    <message>
        <source>switch the Store</source>
        <translation>activer ou désactiver le Store</translation>
    </message>
    <message>
        <source>take the reaction back</source>
        <translation>retirer la réaction</translation>
    </message>
    <message>
        <source>takes no messages now ({detail})</source>
        <translation>ne prend pas de messages en ce moment ({detail})</translation>
    </message>
    <message>
        <source>tell that you are typing</source>
        <translation>signaler que vous écrivez</translation>
    </message>
    <message>
        <source>test the Store</source>
        <translation>tester le Store</translation>
    </message>
    <message>
        <source>that is this device itself</source>
        <translation>c’est cet appareil lui-même</translation>
    </message>
    <message>
        <source>the address is longer than {allowed} characters</source>
        <translation>l’adresse dépasse {allowed} caractères</translation>
    </message>
    <message>
        <source>the clock is {time} ahead</source>
        <translation>l’horloge avance de {time}</translation>
    </message>
    <message>
        <source>the clock is {time} behind</source>
        <translation>l’horloge retarde de {time}</translation>
    </message>
    <message numerus="yes">
        <source>the clocks of {name} and %n others are up to {furthest} ahead</source>
        <comment>the clocks of {name} and %n other are up to {furthest} ahead</comment>
        <translation>
            <numerusform>les horloges de {name} et %n autre avancent de {furthest} au plus</numerusform>
            <numerusform>les horloges de {name} et %n autres avancent de {furthest} au plus</numerusform>
        </translation>
    </message>
    <message>
        <source>the clocks of {name} and {other} are up to {furthest} ahead</source>
        <translation>les horloges de {name} et {other} avancent de {furthest} au plus</translation>
    </message>
    <message>
        <source>the connection took the proxy too long</source>
        <translation>le proxy a mis trop de temps à se connecter</translation>
    </message>
    <message>
        <source>the connection was lost</source>
        <translation>la connexion a été perdue</translation>
    </message>
    <message>
        <source>the host refused the proxy&apos;s connection</source>
        <translation>l’hôte a refusé la connexion du proxy</translation>
    </message>
    <message>
        <source>the longest for {time}</source>
        <translation>le plus ancien depuis {time}</translation>
    </message>
    <message>
        <source>the nearest are drawn</source>
        <translation>les plus proches sont dessinés</translation>
    </message>
    <message>
        <source>the network failed</source>
        <translation>le réseau a échoué</translation>
    </message>
    <message>
        <source>the onion service could not be introduced to</source>
        <translation>la mise en relation avec le service onion a échoué</translation>
    </message>
    <message>
        <source>the onion service did not answer</source>
        <translation>le service onion n’a pas répondu</translation>
    </message>
    <message>
        <source>the onion service is not known</source>
        <translation>le service onion est inconnu</translation>
    </message>
    <message>
        <source>the onion service needs a key</source>
        <translation>le service onion demande une clé</translation>
    </message>
    <message>
        <source>the onion service refused the key</source>
        <translation>le service onion a refusé la clé</translation>
    </message>
    <message>
        <source>the onion service&apos;s description is not valid</source>
        <translation>la description du service onion n’est pas valable</translation>
    </message>
    <message>
        <source>the onion service&apos;s introduction took too long</source>
        <translation>la mise en relation avec le service onion a pris trop de temps</translation>
    </message>
    <message>
        <source>the other side closed the connection</source>
        <translation>l’autre côté a fermé la connexion</translation>
    </message>
    <message>
        <source>the peer is {found}, expected was {expected}</source>
        <translation>le pair est {found}, {expected} était attendu</translation>
    </message>
    <message>
        <source>the proxy answers wrongly</source>
        <translation>le proxy répond mal</translation>
    </message>
    <message>
        <source>the proxy cannot be reached: {detail}</source>
        <translation>le proxy n’est pas joignable&#xa0;: {detail}</translation>
    </message>
    <message>
        <source>the proxy cannot open connections (it knows no CONNECT)</source>
        <translation>le proxy ne peut pas ouvrir de connexions (il ne connaît pas CONNECT)</translation>
    </message>
    <message>
        <source>the proxy cannot reach that host</source>
        <translation>le proxy ne peut pas joindre cet hôte</translation>
    </message>
    <message>
        <source>the proxy cannot reach that network</source>
        <translation>le proxy ne peut pas joindre ce réseau</translation>
    </message>
    <message>
        <source>the proxy could not connect and does not say why</source>
        <translation>le proxy n’a pas pu se connecter et ne dit pas pourquoi</translation>
    </message>
    <message>
        <source>the proxy does not allow this connection</source>
        <translation>le proxy n’autorise pas cette connexion</translation>
    </message>
    <message>
        <source>the proxy does not support this kind of address</source>
        <translation>le proxy ne prend pas en charge ce type d’adresse</translation>
    </message>
    <message>
        <source>the proxy hung up</source>
        <translation>le proxy a raccroché</translation>
    </message>
    <message>
        <source>the proxy refuses this user and password</source>
        <translation>le proxy refuse cet utilisateur et ce mot de passe</translation>
    </message>
    <message>
        <source>the proxy refuses with the unknown number {detail}</source>
        <translation>le proxy refuse avec le numéro inconnu {detail}</translation>
    </message>
    <message>
        <source>the proxy wants a user: set it as socks5://USER:PASSWORD@HOST:PORT</source>
        <translation>le proxy veut un utilisateur&#xa0;: indiquez-le comme socks5://USER:PASSWORD@HOST:PORT</translation>
    </message>
    <message>
        <source>the proxy wants another user or another way to log in: set it as socks5://USER:PASSWORD@HOST:PORT</source>
        <translation>le proxy veut un autre utilisateur ou une autre façon de se connecter&#xa0;: indiquez-le comme socks5://USER:PASSWORD@HOST:PORT</translation>
    </message>
    <message>
        <source>there can be at most {allowed} addresses</source>
        <translation>il peut y avoir {allowed} adresses au plus</translation>
    </message>
    <message>
        <source>there is no Store to ask</source>
        <translation>il n’y a pas de Store à interroger</translation>
    </message>
    <message>
        <source>there is no Store to ask; it is fetched as soon as there is one</source>
        <translation>il n’y a pas de Store à interroger&#x202f;; la récupération se fera dès qu’il y en aura un</translation>
    </message>
    <message>
        <source>there were too many connections to it</source>
        <translation>il y avait trop de connexions avec lui</translation>
    </message>
    <message>
        <source>they could not be reached for 30 days</source>
        <translation>la personne n’a pas pu être jointe pendant 30 jours</translation>
    </message>
    <message>
        <source>this device cannot listen on {detail}</source>
        <translation>cet appareil ne peut pas écouter sur {detail}</translation>
    </message>
    <message>
        <source>this device cannot listen on {detail}: use /ws, and a proxy before it for TLS</source>
        <translation>cet appareil ne peut pas écouter sur {detail}&#xa0;: utilisez /ws, et un proxy devant lui pour TLS</translation>
    </message>
    <message>
        <source>this device closed it</source>
        <translation>cet appareil l’a fermée</translation>
    </message>
    <message>
        <source>this device has no room for more peers</source>
        <translation>cet appareil n’a plus de place pour d’autres pairs</translation>
    </message>
    <message>
        <source>this device is not connected to the network</source>
        <translation>cet appareil n’est pas connecté au réseau</translation>
    </message>
    <message>
        <source>this is no onion address</source>
        <translation>ce n’est pas une adresse onion</translation>
    </message>
    <message>
        <source>this message cannot be published</source>
        <translation>ce message ne peut pas être publié</translation>
    </message>
    <message>
        <source>this, {id}</source>
        <translation>celui-ci, {id}</translation>
    </message>
    <message>
        <source>time in the mesh</source>
        <translation>temps dans le maillage</translation>
    </message>
    <message numerus="yes">
        <source>to %n peers</source>
        <comment>to %n peer</comment>
        <translation>
            <numerusform>à %n pair</numerusform>
            <numerusform>à %n pairs</numerusform>
        </translation>
    </message>
    <message>
        <source>to be acknowledged</source>
        <translation>à acquitter</translation>
    </message>
    <message>
        <source>together</source>
        <translation>ensemble</translation>
    </message>
    <message>
        <source>told us so</source>
        <translation>nous l’a dit</translation>
    </message>
    <message>
        <source>too few messages when it left the mesh</source>
        <translation>trop peu de messages quand il a quitté le maillage</translation>
    </message>
    <message>
        <source>too few messages while in the mesh</source>
        <translation>trop peu de messages dans le maillage</translation>
    </message>
    <message>
        <source>too many connections are open already</source>
        <translation>trop de connexions sont déjà ouvertes</translation>
    </message>
    <message>
        <source>too many connections at once</source>
        <translation>trop de connexions à la fois</translation>
    </message>
    <message>
        <source>too many connections from one address</source>
        <translation>trop de connexions d’une même adresse</translation>
    </message>
    <message>
        <source>too much waited to be sent to it</source>
        <translation>trop de données attendaient de lui être envoyées</translation>
    </message>
    <message>
        <source>true or false</source>
        <translation>true ou false</translation>
    </message>
    <message>
        <source>try the passphrase</source>
        <translation>essayer la phrase secrète</translation>
    </message>
    <message>
        <source>turn off daily backups</source>
        <translation>arrêter les sauvegardes quotidiennes</translation>
    </message>
    <message>
        <source>unblock the person</source>
        <translation>débloquer la personne</translation>
    </message>
    <message>
        <source>under {percent} % chance</source>
        <translation>moins de {percent}&#xa0;% de risque</translation>
    </message>
    <message>
        <source>unmute the conversation</source>
        <translation>réactiver la conversation</translation>
    </message>
    <message>
        <source>unmute the member</source>
        <translation>réactiver le membre</translation>
    </message>
    <message>
        <source>until {date}, {time}</source>
        <translation>jusqu’au {date}, {time}</translation>
    </message>
    <message>
        <source>until {time}</source>
        <translation>jusqu’à {time}</translation>
    </message>
    <message>
        <source>up to {seconds} s late</source>
        <translation>jusqu’à {seconds} s de retard</translation>
    </message>
    <message>
        <source>verified</source>
        <translation>identité vérifiée</translation>
    </message>
    <message>
        <source>waiting</source>
        <translation>en attente</translation>
    </message>
    <message>
        <source>waiting for earlier messages</source>
        <translation>en attente de messages antérieurs</translation>
    </message>
    <message>
        <source>waits for others</source>
        <translation>en attend d’autres</translation>
    </message>
    <message>
        <source>warning: {text}</source>
        <translation>avertissement&#xa0;: {text}</translation>
    </message>
    <message>
        <source>what answers there is no SOCKS5 proxy</source>
        <translation>ce qui y répond n’est pas un proxy SOCKS5</translation>
    </message>
    <message>
        <source>whoever let you in</source>
        <translation>la personne qui vous a fait entrer</translation>
    </message>
    <message>
        <source>withdraw the request</source>
        <translation>retirer la demande</translation>
    </message>
    <message>
        <source>without a name</source>
        <translation>sans nom</translation>
    </message>
    <message>
        <source>without an id</source>
        <translation>sans identifiant</translation>
    </message>
    <message>
        <source>wrote it</source>
        <translation>l’a écrit</translation>
    </message>
    <message>
        <source>yesterday {time}</source>
        <translation>hier à {time}</translation>
    </message>
    <message>
        <source>you</source>
        <translation>vous</translation>
    </message>
    <message>
        <source>your clock was {furthest} ahead</source>
        <translation>votre horloge avançait de {furthest}</translation>
    </message>
    <message>
        <source>{address} could not be reached: {why}.</source>
        <translation>{address} n’a pas pu être joint&#xa0;: {why}.</translation>
    </message>
    <message>
        <source>{answers}, but something is wrong. {reason}</source>
        <translation>{answers}, mais quelque chose ne va pas. {reason}</translation>
    </message>
    <message>
        <source>{asked}, {next_try}</source>
        <translation>{asked}, {next_try}</translation>
    </message>
    <message>
        <source>{came}, late</source>
        <translation>{came}, en retard</translation>
    </message>
    <message>
        <source>{came}, late: {time} after it was signed</source>
        <translation>{came}, en retard&#xa0;: {time} après sa signature</translation>
    </message>
    <message>
        <source>{came}, {time} after it was signed</source>
        <translation>{came}, {time} après sa signature</translation>
    </message>
    <message>
        <source>{came}. In its place {time} after it was signed, together with {name} {id}, on which it depends</source>
        <translation>{came}. À sa place {time} après sa signature, en même temps que {name} {id}, dont il dépend</translation>
    </message>
    <message>
        <source>{chance} it is wrong</source>
        <translation>{chance} d’erreur</translation>
    </message>
    <message numerus="yes">
        <source>{complete} of {number} queries answered to the end</source>
        <comment>{complete} of {number} query answered to the end</comment>
        <translation>
            <numerusform>{complete} requête sur {number} répondue jusqu’au bout</numerusform>
            <numerusform>{complete} requêtes sur {number} répondues jusqu’au bout</numerusform>
        </translation>
    </message>
    <message>
        <source>{conversation}, from {name}</source>
        <translation>{conversation}, de {name}</translation>
    </message>
    <message>
        <source>{conversation}: {messages} gone, of {when}</source>
        <translation>{conversation}&#xa0;: {messages} en moins, du {when}</translation>
    </message>
    <message>
        <source>{date}, {time}</source>
        <translation>{date}, {time}</translation>
    </message>
    <message>
        <source>{date}: no messages. The next ones after it are shown.</source>
        <translation>{date}&#xa0;: aucun message. Les premiers qui suivent sont affichés.</translation>
    </message>
    <message>
        <source>{date}: there are messages.</source>
        <translation>{date}&#xa0;: il y a des messages.</translation>
    </message>
    <message>
        <source>{done}</source>
        <translation>{done}</translation>
    </message>
    <message>
        <source>{done} of {whole}</source>
        <translation>{done} sur {whole}</translation>
    </message>
    <message>
        <source>{duration} left</source>
        <translation>encore {duration}</translation>
    </message>
    <message>
        <source>{emoji} from {names}</source>
        <translation>{emoji} de {names}</translation>
    </message>
    <message>
        <source>{file} was left out, in whole or in part: {reason}.</source>
        <translation>{file} a été laissé de côté, en tout ou en partie&#xa0;: {reason}.</translation>
    </message>
    <message>
        <source>{file}: {text}</source>
        <translation>{file}&#xa0;: {text}</translation>
    </message>
    <message>
        <source>{first} to {last}</source>
        <translation>{first} au {last}</translation>
    </message>
    <message>
        <source>{given} days: allowed are 1 to {limit}</source>
        <translation>{given} jours&#xa0;: de 1 à {limit} sont permis</translation>
    </message>
    <message>
        <source>{group} lets nobody in any more</source>
        <translation>{group} ne fait plus entrer personne</translation>
    </message>
    <message numerus="yes">
        <source>{group}: %n messages are held, because the clock of {names} is {duration} ahead. They take their place when their time has come, or when the clocks agree.</source>
        <comment>{group}: %n message is held, because the clock of {names} is {duration} ahead. They take their place when their time has come, or when the clocks agree.</comment>
        <translation>
            <numerusform>{group}&#xa0;: %n message est retenu, car l’horloge de {names} avance de {duration}. Il prendra sa place quand son heure sera venue, ou quand les horloges s’accorderont.</numerusform>
            <numerusform>{group}&#xa0;: %n messages sont retenus, car l’horloge de {names} avance de {duration}. Ils prendront leur place quand leur heure sera venue, ou quand les horloges s’accorderont.</numerusform>
        </translation>
    </message>
    <message>
        <source>{group}: the index of its messages was damaged or out of date. It was made again; no message is lost.</source>
        <translation>{group}&#xa0;: l’index de ses messages était endommagé ou périmé. Il a été refait&#x202f;; aucun message n’est perdu.</translation>
    </message>
    <message>
        <source>{group}: {words}</source>
        <translation>{group}&#xa0;: {words}</translation>
    </message>
    <message>
        <source>{held} of {all}</source>
        <translation>{held} sur {all}</translation>
    </message>
    <message>
        <source>{held}, maybe {maybe}</source>
        <translation>{held}, peut-être {maybe}</translation>
    </message>
    <message>
        <source>{hours} h {minutes} min</source>
        <translation>{hours}&#xa0;h {minutes}&#xa0;min</translation>
    </message>
    <message>
        <source>{id} (about the contact)</source>
        <translation>{id} (au sujet du contact)</translation>
    </message>
    <message numerus="yes">
        <source>{id}, missing since {time}, asked for %n times</source>
        <comment>{id}, missing since {time}, asked for %n time</comment>
        <translation>
            <numerusform>{id}, manquant depuis {time}, demandé %n fois</numerusform>
            <numerusform>{id}, manquant depuis {time}, demandé %n fois</numerusform>
        </translation>
    </message>
    <message>
        <source>{last} Whoever loses this device goes on with a backup.</source>
        <translation>{last} Avec une sauvegarde, on continue même si l’on perd cet appareil.</translation>
    </message>
    <message>
        <source>{members}, {number} former</source>
        <translation>{members}, anciens&#xa0;: {number}</translation>
    </message>
    <message>
        <source>{members}: only you</source>
        <translation>{members}&#xa0;: vous seulement</translation>
    </message>
    <message>
        <source>{members}: only you so far</source>
        <translation>{members}&#xa0;: vous seulement pour l’instant</translation>
    </message>
    <message>
        <source>{members}: {names}</source>
        <translation>{members}&#xa0;: {names}</translation>
    </message>
    <message>
        <source>{meshed} of {all} topics in the mesh, {shared} shared</source>
        <translation>dans le maillage pour {meshed} sujets sur {all}, {shared} en commun</translation>
    </message>
    <message>
        <source>{messages}, {shown} shown</source>
        <translation>{messages}, {shown} affichés</translation>
    </message>
    <message>
        <source>{message}: {where}. Look into it</source>
        <translation>{message}&#xa0;: {where}. L’inspecter</translation>
    </message>
    <message>
        <source>{missing}; given up</source>
        <translation>{missing}&#x202f;; abandonné</translation>
    </message>
    <message>
        <source>{missing}; next {time}</source>
        <translation>{missing}&#x202f;; prochaine demande {time}</translation>
    </message>
    <message>
        <source>{most} or {last}</source>
        <translation>{most} ou {last}</translation>
    </message>
    <message>
        <source>{names} and others</source>
        <translation>{names} et d’autres</translation>
    </message>
    <message>
        <source>{names} and {last}</source>
        <translation>{names} et {last}</translation>
    </message>
    <message>
        <source>{names} said so</source>
        <translation>{names} l’ont dit</translation>
    </message>
    <message numerus="yes">
        <source>{names}, and %n more</source>
        <comment>{names}, and %n more</comment>
        <translation>
            <numerusform>{names}, et %n autre</numerusform>
            <numerusform>{names}, et %n autres</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>{name} (%n new)</source>
        <comment>{name} (%n new)</comment>
        <translation>
            <numerusform>{name} (%n nouveau)</numerusform>
            <numerusform>{name} (%n nouveaux)</numerusform>
        </translation>
    </message>
    <message>
        <source>{name} accepted</source>
        <translation>{name} a accepté</translation>
    </message>
    <message>
        <source>{name} allowed every member to let others in</source>
        <translation>{name} a permis à chaque membre de faire entrer d’autres personnes</translation>
    </message>
    <message>
        <source>{name} allowed only admins to let others in</source>
        <translation>{name} a permis aux seuls admins de faire entrer d’autres personnes</translation>
    </message>
    <message>
        <source>{name} an admin no more?</source>
        <translation>Retirer à {name} le rôle d’admin&#x202f;?</translation>
    </message>
    <message numerus="yes">
        <source>{name} and %n others</source>
        <comment>{name} and %n other</comment>
        <translation>
            <numerusform>{name} et %n autre</numerusform>
            <numerusform>{name} et %n autres</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>{name} and %n others are typing…</source>
        <comment>{name} and %n other are typing…</comment>
        <translation>
            <numerusform>{name} et %n autre écrivent…</numerusform>
            <numerusform>{name} et %n autres écrivent…</numerusform>
        </translation>
    </message>
    <message>
        <source>{name} and {other}</source>
        <translation>{name} et {other}</translation>
    </message>
    <message>
        <source>{name} and {other} are typing…</source>
        <translation>{name} et {other} écrivent…</translation>
    </message>
    <message>
        <source>{name} and {other} say so</source>
        <translation>{name} et {other} le disent</translation>
    </message>
    <message>
        <source>{name} asked to talk</source>
        <translation>{name} a demandé à discuter</translation>
    </message>
    <message>
        <source>{name} asks no longer</source>
        <translation>{name} ne demande plus</translation>
    </message>
    <message>
        <source>{name} asks to be let in</source>
        <translation>{name} demande à entrer</translation>
    </message>
    <message>
        <source>{name} cannot be asked from here</source>
        <translation>Impossible de le demander à {name} d’ici</translation>
    </message>
    <message>
        <source>{name} changed the group&apos;s picture</source>
        <translation>{name} a changé l’image du groupe</translation>
    </message>
    <message>
        <source>{name} declined</source>
        <translation>{name} a refusé</translation>
    </message>
    <message>
        <source>{name} deleted a message</source>
        <translation>{name} a supprimé un message</translation>
    </message>
    <message>
        <source>{name} deleted this message</source>
        <translation>{name} a supprimé ce message</translation>
    </message>
    <message>
        <source>{name} did not let you in</source>
        <translation>{name} ne vous a pas fait entrer</translation>
    </message>
    <message>
        <source>{name} edited: {text}</source>
        <translation>{name} a modifié&#xa0;: {text}</translation>
    </message>
    <message>
        <source>{name} ended the link of this group: people come in by invitations</source>
        <translation>{name} a mis fin au lien de ce groupe&#xa0;: on entre par invitation</translation>
    </message>
    <message>
        <source>{name} has to decide</source>
        <translation>{name} doit décider</translation>
    </message>
    <message>
        <source>{name} is no admin any more, by their own wish</source>
        <translation>{name} n’est plus admin, de son propre souhait</translation>
    </message>
    <message>
        <source>{name} is sending unusually much. Messages beyond a day&apos;s limit are kept aside and not shown.</source>
        <translation>{name} envoie plus de messages que d’ordinaire. Au-delà de la limite d’un jour, ils sont mis de côté et ne s’affichent pas.</translation>
    </message>
    <message>
        <source>{name} is typing…</source>
        <translation>{name} écrit…</translation>
    </message>
    <message>
        <source>{name} joined</source>
        <translation>{name} a rejoint le groupe</translation>
    </message>
    <message>
        <source>{name} left</source>
        <translation>{name} a quitté le groupe</translation>
    </message>
    <message>
        <source>{name} let you in</source>
        <translation>{name} vous a fait entrer</translation>
    </message>
    <message>
        <source>{name} let you into {group}.</source>
        <translation>{name} vous a fait entrer dans {group}.</translation>
    </message>
    <message>
        <source>{name} let {other} in</source>
        <translation>{name} a fait entrer {other}</translation>
    </message>
    <message>
        <source>{name} made you an admin</source>
        <translation>{name} vous a nommé admin</translation>
    </message>
    <message>
        <source>{name} made {other} an admin</source>
        <translation>{name} a nommé {other} admin</translation>
    </message>
    <message>
        <source>{name} named the group “{text}”</source>
        <translation>{name} a nommé le groupe «&#xa0;{text}&#xa0;»</translation>
    </message>
    <message>
        <source>{name} reacted {emoji} to: {text}</source>
        <translation>{name} a réagi par {emoji} à&#xa0;: {text}</translation>
    </message>
    <message>
        <source>{name} removed the topic</source>
        <translation>{name} a retiré le sujet</translation>
    </message>
    <message>
        <source>{name} removed you</source>
        <translation>{name} vous a retiré du groupe</translation>
    </message>
    <message>
        <source>{name} removed you from this group</source>
        <translation>{name} vous a retiré de ce groupe</translation>
    </message>
    <message>
        <source>{name} removed {other}</source>
        <translation>{name} a retiré {other} du groupe</translation>
    </message>
    <message>
        <source>{name} sent it again, because it was missing</source>
        <translation>{name} l’a renvoyé, parce qu’il manquait</translation>
    </message>
    <message>
        <source>{name} set the topic: {text}</source>
        <translation>{name} a fixé le sujet&#xa0;: {text}</translation>
    </message>
    <message>
        <source>{name} started this group</source>
        <translation>{name} a créé ce groupe</translation>
    </message>
    <message>
        <source>{name} stays a member. What {name} did as an admin stays as it is.</source>
        <translation>{name} reste membre. Ce que {name} a fait comme admin reste en l’état.</translation>
    </message>
    <message>
        <source>{name} told different people different things.</source>
        <translation>{name} a dit des choses différentes à différentes personnes.</translation>
    </message>
    <message>
        <source>{name} wants to talk to you</source>
        <translation>{name} veut discuter avec vous</translation>
    </message>
    <message>
        <source>{name} was last heard {time} ago.</source>
        <translation>{name}&#xa0;: dernier signe il y a {time}.</translation>
    </message>
    <message>
        <source>{name} was not heard since the start.</source>
        <translation>{name}&#xa0;: aucun signe depuis le démarrage.</translation>
    </message>
    <message>
        <source>{name} was told that you want to come in. You need not do anything more.</source>
        <translation>{name} sait que vous voulez entrer. Vous n’avez plus rien à faire.</translation>
    </message>
    <message>
        <source>{name} withdrew the request</source>
        <translation>{name} a retiré sa demande</translation>
    </message>
    <message>
        <source>{name} — Causerie</source>
        <translation>{name} — Causerie</translation>
    </message>
    <message>
        <source>{name}&apos;s clock is {furthest} ahead</source>
        <translation>l’horloge de {name} avance de {furthest}</translation>
    </message>
    <message>
        <source>{name}&apos;s device lets you in, and has to be online once.</source>
        <translation>C’est l’appareil de {name} qui vous fait entrer&#x202f;; il doit être en ligne une fois.</translation>
    </message>
    <message>
        <source>{name}&apos;s fingerprint, to compare</source>
        <translation>L’empreinte de {name}, à comparer</translation>
    </message>
    <message numerus="yes">
        <source>{name}, %n unread</source>
        <comment>{name}, %n unread</comment>
        <translation>
            <numerusform>{name}, %n non lu</numerusform>
            <numerusform>{name}, %n non lus</numerusform>
        </translation>
    </message>
    <message>
        <source>{name}, channel with a shared key</source>
        <translation>{name}, canal à clé partagée</translation>
    </message>
    <message>
        <source>{name}, fingerprint {fingerprint}. {known}</source>
        <translation>{name}, empreinte {fingerprint}. {known}</translation>
    </message>
    <message>
        <source>{name}, group</source>
        <translation>{name}, groupe</translation>
    </message>
    <message>
        <source>{name}, open channel, not encrypted</source>
        <translation>{name}, canal ouvert, non chiffré</translation>
    </message>
    <message>
        <source>{name}, person</source>
        <translation>{name}, personne</translation>
    </message>
    <message>
        <source>{name}, person, verified</source>
        <translation>{name}, personne, identité vérifiée</translation>
    </message>
    <message numerus="yes">
        <source>{name}, {other} and %n more say so</source>
        <comment>{name}, {other} and %n more say so</comment>
        <translation>
            <numerusform>{name}, {other} et %n autre le disent</numerusform>
            <numerusform>{name}, {other} et %n autres le disent</numerusform>
        </translation>
    </message>
    <message>
        <source>{name}, {time}</source>
        <translation>{name}, {time}</translation>
    </message>
    <message>
        <source>{name}, {word}. Your profile</source>
        <translation>{name}, {word}. Votre profil</translation>
    </message>
    <message>
        <source>{name}: {what}</source>
        <translation>{name}&#xa0;: {what}</translation>
    </message>
    <message>
        <source>{name}: {words}</source>
        <translation>{name}&#xa0;: {words}</translation>
    </message>
    <message>
        <source>{nodes} asked, and nothing of what is missing is there.</source>
        <translation>Interrogés&#xa0;: {nodes}. Rien de ce qui manque ne s’y trouve.</translation>
    </message>
    <message>
        <source>{number} %</source>
        <translation>{number}&#xa0;%</translation>
    </message>
    <message>
        <source>{number} B/s</source>
        <translation>{number}&#xa0;o/s</translation>
    </message>
    <message>
        <source>{number} GB</source>
        <translation>{number}&#xa0;Go</translation>
    </message>
    <message>
        <source>{number} MB</source>
        <translation>{number}&#xa0;Mo</translation>
    </message>
    <message>
        <source>{number} TB</source>
        <translation>{number}&#xa0;To</translation>
    </message>
    <message>
        <source>{number} a second</source>
        <translation>{number} par seconde</translation>
    </message>
    <message>
        <source>{number} doubled</source>
        <translation>doublées&#xa0;: {number}</translation>
    </message>
    <message>
        <source>{number} h</source>
        <translation>{number}&#xa0;h</translation>
    </message>
    <message>
        <source>{number} held</source>
        <translation>retenues&#xa0;: {number}</translation>
    </message>
    <message>
        <source>{number} kB</source>
        <translation>{number}&#xa0;Ko</translation>
    </message>
    <message>
        <source>{number} kB/s</source>
        <translation>{number} ko/s</translation>
    </message>
    <message>
        <source>{number} late</source>
        <translation>retardées&#xa0;: {number}</translation>
    </message>
    <message>
        <source>{number} left out that others had</source>
        <translation>{number} omis que d’autres avaient</translation>
    </message>
    <message>
        <source>{number} looked at</source>
        <translation>{number} examinés</translation>
    </message>
    <message>
        <source>{number} lost</source>
        <translation>perdues&#xa0;: {number}</translation>
    </message>
    <message>
        <source>{number} lost because too much waited</source>
        <translation>perdues faute de place&#xa0;: {number}</translation>
    </message>
    <message numerus="yes">
        <source>{number} messages, {new} of them first from here</source>
        <comment>{number} message, {new} of them first from here</comment>
        <translation>
            <numerusform>{number} message, dont {new} venu d’abord d’ici</numerusform>
            <numerusform>{number} messages, dont {new} venus d’abord d’ici</numerusform>
        </translation>
    </message>
    <message>
        <source>{number} min</source>
        <translation>{number}&#xa0;min</translation>
    </message>
    <message>
        <source>{number} missing</source>
        <translation>{number} manquants</translation>
    </message>
    <message>
        <source>{number} ms</source>
        <translation>{number}&#xa0;ms</translation>
    </message>
    <message>
        <source>{number} new</source>
        <translation>{number} nouveaux</translation>
    </message>
    <message numerus="yes">
        <source>{number} new messages came.</source>
        <comment>{number} new message came.</comment>
        <translation>
            <numerusform>{number} nouveau message est arrivé.</numerusform>
            <numerusform>{number} nouveaux messages sont arrivés.</numerusform>
        </translation>
    </message>
    <message>
        <source>{number} of {all} came: {names}</source>
        <translation>{number} sur {all}&#xa0;: {names}</translation>
    </message>
    <message>
        <source>{number} of {total}</source>
        <translation>{number} sur {total}</translation>
    </message>
    <message>
        <source>{number} of {total} or more</source>
        <translation>{number} sur {total} ou plus</translation>
    </message>
    <message numerus="yes">
        <source>{number} rows are not as they should be, and were left out.</source>
        <comment>{number} row is not as it should be, and was left out.</comment>
        <translation>
            <numerusform>{number} ligne n’est pas conforme et a été laissée de côté.</numerusform>
            <numerusform>{number} lignes ne sont pas conformes et ont été laissées de côté.</numerusform>
        </translation>
    </message>
    <message>
        <source>{number} s</source>
        <translation>{number}&#xa0;s</translation>
    </message>
    <message>
        <source>{number} {why}</source>
        <translation>{number} {why}</translation>
    </message>
    <message>
        <source>{old} is now called {new}</source>
        <translation>{old}&#xa0;s’appelle maintenant {new}</translation>
    </message>
    <message>
        <source>{other} is no admin any more: you decided so</source>
        <translation>{other} n’est plus admin&#xa0;: vous l’avez décidé</translation>
    </message>
    <message>
        <source>{other} is no admin any more: {name} decided so</source>
        <translation>{other} n’est plus admin&#xa0;: {name} l’a décidé</translation>
    </message>
    <message>
        <source>{over} kB too long: a message can hold {most} kB. Shorten it or send it in parts.</source>
        <translation>{over}&#xa0;Ko de trop&#xa0;: un message peut contenir {most}&#xa0;Ko. Raccourcissez-le ou envoyez-le en plusieurs parties.</translation>
    </message>
    <message>
        <source>{path} cannot be written: {reason}.</source>
        <translation>{path} ne peut pas être écrit&#xa0;: {reason}.</translation>
    </message>
    <message>
        <source>{peers} and {nodes} were asked, and have nothing of what is missing.</source>
        <translation>{peers} et {nodes} ont été interrogés, et n’ont rien de ce qui manque.</translation>
    </message>
    <message>
        <source>{peers} asked, and nothing of what is missing is there.</source>
        <translation>Interrogés&#xa0;: {peers}. Rien de ce qui manque ne s’y trouve.</translation>
    </message>
    <message>
        <source>{people}, expired on {date}</source>
        <translation>{people}, expirée le {date}</translation>
    </message>
    <message>
        <source>{people}, of no use: whoever made it may not let others in any more</source>
        <translation>{people}, sans effet&#xa0;: qui l’a créée ne peut plus faire entrer personne</translation>
    </message>
    <message>
        <source>{people}, revoked</source>
        <translation>{people}, révoquée</translation>
    </message>
    <message>
        <source>{people}, until {date}</source>
        <translation>{people}, jusqu’au {date}</translation>
    </message>
    <message>
        <source>{people}, used up</source>
        <translation>{people}, épuisée</translation>
    </message>
    <message>
        <source>{percent} %</source>
        <translation>{percent}&#xa0;%</translation>
    </message>
    <message>
        <source>{percent} % chance</source>
        <translation>{percent}&#xa0;% de risque</translation>
    </message>
    <message>
        <source>{percent} % done</source>
        <translation>{percent}&#xa0;% terminé</translation>
    </message>
    <message>
        <source>{percent} % doubled</source>
        <translation>{percent}&#xa0;% doublées</translation>
    </message>
    <message>
        <source>{percent} % lost</source>
        <translation>{percent}&#xa0;% perdues</translation>
    </message>
    <message>
        <source>{percent} % overtaken</source>
        <translation>{percent}&#xa0;% dépassées</translation>
    </message>
    <message>
        <source>{place} of {number} in an album</source>
        <translation>{place} sur {number} dans un album</translation>
    </message>
    <message>
        <source>{problem} Allowed: {allowed}.</source>
        <translation>{problem} Permis&#xa0;: {allowed}.</translation>
    </message>
    <message>
        <source>{problem} Nothing was left behind.</source>
        <translation>{problem} Rien n’est resté sur le disque.</translation>
    </message>
    <message>
        <source>{reason}: {node} {problem}</source>
        <translation>{reason}&#xa0;: {node} {problem}</translation>
    </message>
    <message numerus="yes">
        <source>{row}, %n ask to be let in</source>
        <comment>{row}, %n asks to be let in</comment>
        <translation>
            <numerusform>{row}, %n demande à entrer</numerusform>
            <numerusform>{row}, %n demandent à entrer</numerusform>
        </translation>
    </message>
    <message>
        <source>{row}, pinned</source>
        <translation>{row}, épinglée</translation>
    </message>
    <message>
        <source>{row}, verified</source>
        <translation>{row}, identité vérifiée</translation>
    </message>
    <message>
        <source>{said}, {claimed}, held</source>
        <translation>{said}, {claimed}, retenu</translation>
    </message>
    <message>
        <source>{said}, {number} of {heard} who were heard.</source>
        <translation>{said}, soit {number} sur {heard} personnes entendues.</translation>
    </message>
    <message>
        <source>{said}; {more}</source>
        <translation>{said}&#x202f;; {more}</translation>
    </message>
    <message>
        <source>{sender} in {conversation}</source>
        <translation>{sender} dans {conversation}</translation>
    </message>
    <message>
        <source>{sent} {peers} {way}</source>
        <translation>{sent} {peers} {way}</translation>
    </message>
    <message>
        <source>{sent}: nobody was there</source>
        <translation>{sent}&#xa0;: personne n’était là</translation>
    </message>
    <message>
        <source>{service} and no {other}</source>
        <translation>{service} et pas {other}</translation>
    </message>
    <message>
        <source>{size} MB</source>
        <translation>{size}&#xa0;Mo</translation>
    </message>
    <message>
        <source>{size} bytes</source>
        <translation>{size} octets</translation>
    </message>
    <message>
        <source>{size} given back to the disk.</source>
        <translation>{size} rendus au disque.</translation>
    </message>
    <message>
        <source>{size} kB</source>
        <translation>{size}&#xa0;Ko</translation>
    </message>
    <message>
        <source>{size}, not fetched yet</source>
        <translation>{size}, pas encore récupéré</translation>
    </message>
    <message>
        <source>{size}, {bits} bits, {fill} % set, about {ids} ids; wrong with a {chance}</source>
        <translation>{size}, {bits} bits, {fill}&#x202f;% à 1, environ {ids} identifiants&#x202f;; faux avec {chance}</translation>
    </message>
    <message>
        <source>{size}/s</source>
        <translation>{size}/s</translation>
    </message>
    <message>
        <source>{state}, after it had waited {time}</source>
        <translation>{state}, après {time} d’attente</translation>
    </message>
    <message>
        <source>{state}, known since {time}</source>
        <translation>{state}, connu depuis {time}</translation>
    </message>
    <message>
        <source>{store} did not answer</source>
        <translation>{store} n’a pas répondu</translation>
    </message>
    <message>
        <source>{store} returned it at {time}.</source>
        <translation>{store} l’a renvoyé (heure&#xa0;: {time}).</translation>
    </message>
    <message>
        <source>{time} ago</source>
        <translation>il y a {time}</translation>
    </message>
    <message>
        <source>{time}, after it had waited {duration} for others</source>
        <translation>{time}, après en avoir attendu d’autres pendant {duration}</translation>
    </message>
    <message>
        <source>{time}, in {duration}</source>
        <translation>{time}, dans {duration}</translation>
    </message>
    <message>
        <source>{time}, shown now</source>
        <translation>{time}, affichée maintenant</translation>
    </message>
    <message>
        <source>{trip}, measured {time} ago</source>
        <translation>{trip}, mesuré il y a {time}</translation>
    </message>
    <message>
        <source>{way}; dialled again when it is lost</source>
        <translation>{way}&#x202f;; rouverte quand elle est perdue</translation>
    </message>
    <message numerus="yes">
        <source>{what} (%n times)</source>
        <comment>{what} (%n time)</comment>
        <translation>
            <numerusform>{what} (%n fois)</numerusform>
            <numerusform>{what} (%n fois)</numerusform>
        </translation>
    </message>
    <message>
        <source>{what}, until {time}</source>
        <translation>{what}, jusqu’à {time}</translation>
    </message>
    <message>
        <source>{where}: {what}</source>
        <translation>{where}&#xa0;: {what}</translation>
    </message>
    <message>
        <source>{whose}: {time}, {day}</source>
        <translation>{whose}&#xa0;: {time}, {day}</translation>
    </message>
    <message>
        <source>{why} It is safe on this device.</source>
        <translation>{why} Il est en sûreté sur cet appareil.</translation>
    </message>
    <message>
        <source>{words} · calls themselves {name}</source>
        <translation>{words} · se fait appeler {name}</translation>
    </message>
    <message>
        <source>{words}, not sent yet</source>
        <translation>{words}, pas encore envoyé</translation>
    </message>
    <message>
        <source>{words}, {number} of {count}</source>
        <translation>{words}, {number} sur {count}</translation>
    </message>
    <message>
        <source>{words}. You decide about each.</source>
        <translation>{words}. Vous décidez pour chacun.</translation>
    </message>
    <message numerus="yes">
        <source>{word}, %n peers</source>
        <comment>{word}, %n peer</comment>
        <translation>
            <numerusform>{word}, %n pair</numerusform>
            <numerusform>{word}, %n pairs</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>{word}, %n service nodes</source>
        <comment>{word}, %n service node</comment>
        <translation>
            <numerusform>{word}, %n nœud de service</numerusform>
            <numerusform>{word}, %n nœuds de service</numerusform>
        </translation>
    </message>
    <message>
        <source>{written} of {total} messages</source>
        <translation>{written} messages sur {total}</translation>
    </message>
    <message>
        <source>“{name}” can run programs on this computer, and {sender} says what it is: nobody has checked it. Open it only if you expected it from them.</source>
        <translation>«&#xa0;{name}&#xa0;» peut lancer des programmes sur cet ordinateur, et seul {sender} dit ce que c’est&#xa0;: personne ne l’a vérifié. Ne l’ouvrez que si vous l’attendiez de sa part.</translation>
    </message>
    <message>
        <source>“{name}” can run programs on this computer. Open it only if you know what it does.</source>
        <translation>«&#xa0;{name}&#xa0;» peut lancer des programmes sur cet ordinateur. Ne l’ouvrez que si vous savez ce qu’il fait.</translation>
    </message>
    <message>
        <source>“{name}” cannot be read: {reason}.</source>
        <translation>«&#xa0;{name}&#xa0;» ne peut pas être lu&#xa0;: {reason}.</translation>
    </message>
    <message>
        <source>“{name}” is empty.</source>
        <translation>«&#xa0;{name}&#xa0;» est vide.</translation>
    </message>
    <message>
        <source>“{name}” is too large: a file can have {most}.</source>
        <translation>«&#xa0;{name}&#xa0;» est trop volumineux&#xa0;: un fichier peut avoir {most}.</translation>
    </message>
    <message>
        <source>“{name}”: {problem}</source>
        <translation>«&#xa0;{name}&#xa0;»&#xa0;: {problem}</translation>
    </message>
    <message numerus="yes">
        <source>… and in %n others.</source>
        <comment>… and in %n other.</comment>
        <translation>
            <numerusform>… et dans %n autre.</numerusform>
            <numerusform>… et dans %n autres.</numerusform>
        </translation>
    </message>
</context>
</TS>
