"""Fillers: words that the guard `content` leaves out, because a text says the same without them.

Like the negations they are frozen: the same words stand in 24_guards.sql.
"""

from __future__ import annotations

# Articles; forms of be, do, have and can; politeness; particles and prepositions without an opposite. A
# corpus does not know the languages of its texts, so each word counts in every text. A filler too much
# merges two texts, and one too few only keeps a copy. So a word is left out if it decides in another of
# these languages, or names something: "die" and "hat" of German; "van" of Dutch; "en" of Dutch, because
# its "of" means "or"; "de" of French, because "de" and "a" are from and to in Spanish; "da" of Italian;
# "dos" of Portuguese; "sei" of Italian; "son" and "hay" of Spanish; "on" of Finnish; "var" of Swedish.
# Pronouns and words of time, place, order and amount are no fillers, and no negation is one.
# The lines are English; German; Dutch; Scandinavian; French; Spanish and Portuguese; Italian; Romanian;
# Polish; Czech and Slovak; Russian, Ukrainian and Bulgarian; Greek; Turkish; Finnish and Hungarian;
# Indonesian; Hindi; Chinese and Japanese.
_WORDS = """
a an the am is are was were be been being do does did done doing have has had having can could of at
please pls kindly thanks thank hello hi hey
der das den dem des ein eine einen einem einer eines ist sind waren wäre habe hast haben habt hatte
hatten kann kannst können könnte könnten konnte tun tut getan bei beim bitte danke hallo
het een heeft hebben hadden kan kunt kunnen alstublieft graag
är har hade gör gjorde ett tack vær være været kunne gjør gjorde hej
le la les un une des est sont suis sommes êtes était étaient être ont avons avez avait avaient avoir
peut peux pouvez peuvent pouvoir fait faire merci bonjour svp
el los las una del está están estar ser es ha han puede puedo pueden poder hace hacer gracias hola
um uma é são está estão foi tem têm pode posso podem obrigado obrigada olá
il lo gli di del della dello dei degli delle è sono essere hanno abbiamo può posso possono prego
grazie ciao
sunt fost avem aveți rog mulțumesc
jest są być był była było były mogę może można proszę dziękuję cześć
jsou byl byla bylo byli být může mohu lze prosím děkuji sú bol bola bolo byť môže ďakujem ahoj
есть был была было были быть могу может можно пожалуйста спасибо здравствуйте привет
є був була було були бути можна може дякую е са съм беше може моля благодаря
ο το οι τα τον την του τησ των ένασ μια ένα είναι ήταν έχει έχουν είχε μπορεί μπορώ παρακαλώ ευχαριστώ
bir lütfen teşekkürler merhaba
ovat oli olivat olla kiitos hei egy vannak kérem köszönöm
adalah ialah tolong silakan dapat terima kasih
है हैं था थी थे का की के कृपया
的 是 请 請 吗 嗎 呢 吧 の
"""
FILLERS = frozenset(_WORDS.split())
"""Words that the guard content leaves out, as they stand in normal forms."""
_HOSTS = """
i you he she it we they this that there here what who where when how why which
"""
HOSTS = frozenset(_HOSTS.split())
"""Words before which an apostrophe has left one of CLITICS: in "what's" it is a filler."""
CLITICS = frozenset(["s", "m", "re", "ve", "d"])
"""Forms of be and have after an apostrophe, fillers after one of HOSTS; elsewhere "m" is a metre."""
