"""The guards that see a difference in pairs that people reported as merged by mistake."""

from __future__ import annotations

from tests.support.connections import Connection
from textsim_db.settings.named_values import GuardRules
from textsim_db.text.guard_lines import elements_apart
from textsim_db.text.guards import guards_of
from textsim_db.text.tokens import tokenize, words

GUARDS = ["numbers", "negations", "words"]
GUARD_WORDS = ["draft", "final", "friday", "monday"]
RULES = GuardRules(tuple(GUARDS), tuple(GUARD_WORDS))
PAIRS = {
    "numbers": [
        ("invoice 4711", "invoice 4712"),
        ("ticket SR-2023-052 is closed", "ticket SR-2023-053 is closed"),
        ("order A1B2C3", "order A1B2C4"),
        ("id 550e8400-e29b-41d4-a716-446655440000", "id 550e8400-e29b-41d4-a716-446655440001"),
        ("call +49 30 1234567", "call +49 30 1234568"),
        ("IBAN DE89 3704 0044 0532 0130 00", "IBAN DE89 3704 0044 0532 0130 01"),
        ("covid19", "covid20"),
        ("due 2024-05-01", "due 2024-06-01"),
        ("on 05/06/2024", "on 06/05/2024"),
        ("at 9:30", "at 19:30"),
        ("the 3rd of March", "the 4th of March"),
        ("version 1.2.1", "version 1.1.2"),
        ("v1.2", "v1.3"),
        ("python 3.10", "python 3.1"),
        ("rows 1 2 and 3", "rows 1 and 2 3"),
        ("pay 5 euro", "pay 50 euro"),
        ("at -5 degrees", "at 5 degrees"),
        ("1.5 litres", "15 litres"),
        ("10⁵ cells", "10⁶ cells"),
        ("½ cup", "¼ cup"),
        ("शुल्क ४७११", "शुल्क ४७१२"),
        ("step ①", "step ②"),
        ("a bottle of 500 ml", "a bottle of 750 ml"),
        ("500ml", "500mg"),
        ("500 ml", "500 mg"),
        ("26th Street", "27th Street"),
        ("1.2.1", "1 2 1 W"),
        ("10×20 cm", "20×10 cm"),
        ("50 m²", "50 m³"),
        ("a pack of 6", "a pack of 12"),
        ("for 2 people", "for people"),
        # Equal for a reader, but a guard refuses rather than understands.
        ("1,000 euro", "1000 euro"),
        ("ISBN 978-3-16-148410-0", "ISBN 9783161484100"),
    ],
    "negations": [
        ("the patient is allergic", "the patient is not allergic"),
        ("it is safe", "it isn't safe"),
        ("it is safe", "it isn\u2019t safe"),
        ("I can go", "I cannot go"),
        ("we will pay", "we won't pay"),
        ("I know", "I dont know"),
        ("with sugar", "without sugar"),
        ("he always smokes", "he never smokes"),
        ("I have time", "I have no time"),
        ("a smoker", "a non-smoker"),
        ("I do not say no", "I do not say so"),
        ("es ist sicher", "es ist nicht sicher"),
        ("er hat ein Auto", "er hat kein Auto"),
        ("mit Zucker", "ohne Zucker"),
        ("het is een fout", "het is geen fout"),
        ("det är säkert", "det är inte säkert"),
        ("det er sikkert", "det er ikke sikkert"),
        ("med sukker", "uden sukker"),
        ("il est là", "il n'est pas là"),
        ("je fume", "je ne fume pas"),
        ("avec sucre", "sans sucre"),
        ("il est malade", "il n'est plus malade"),
        ("quelqu'un a répondu", "personne n'a répondu"),
        ("il y a quelqu'un", "il n'y a personne"),
        ("il est là", "il n'est nulle part"),
        ("il a pu venir", "il n'a pu venir"),
        ("il est grand et fort", "il n'est ni grand ni fort"),
        (
            "une flotte pouvait mieux faire que rester",
            "une flotte ne pouvait mieux faire que rester",
        ),
        ("Er hat Einfluss", "Er hat keinerlei Einfluss"),
        ("Man kann schwimmen", "Man kann nirgendwo schwimmen"),
        ("Es gibt jemanden", "Es gibt niemanden"),
        ("Er schläft", "Er schläft kaum"),
        ("I know him", "I hardly know him"),
        ("те имат деца", "те нямат деца"),
        ("it does work", "it does n't work"),
        ("sandwich w/ cheese", "sandwich w/o cheese"),
        ("es seguro", "no es seguro"),
        ("con azúcar", "sin azúcar"),
        ("é seguro", "não é seguro"),
        ("è sicuro", "non è sicuro"),
        ("este sigur", "nu este sigur"),
        ("to jest prawda", "to nie jest prawda"),
        ("je to pravda", "není to pravda"),
        ("to je istina", "to nije istina"),
        ("это верно", "это не верно"),
        ("це правда", "це не правда"),
        ("είναι σωστό", "δεν είναι σωστό"),
        ("bu doğru", "bu doğru değil"),
        ("hän on täällä", "hän ei ole täällä"),
        ("ez igaz", "ez nem igaz"),
        ("ini benar", "ini tidak benar"),
        ("tôi biết", "tôi không biết"),
        ("هذا صحيح", "هذا غير صحيح"),
        ("این درست است", "این درست نیست"),
        ("یہ درست ہے", "یہ درست نہیں ہے"),
        ("זה נכון", "זה לא נכון"),
        ("यह सही है", "यह सही नहीं है"),
        ("이것은 안전하다", "이것은 안전하지 않다"),
        ("시간이 있다", "시간이 없다"),
        ("갑니다", "안 갑니다"),
        ("这很安全", "这不安全"),
        ("我有时间", "我没有时间"),
        ("行きます", "行きません"),
        ("安全だ", "安全ではない"),
        ("安全だった", "安全ではなかった"),
        ("ปลอดภัย", "ไม่ปลอดภัย"),
    ],
    "words": [
        ("see you on Monday", "see you on Friday"),
        ("the draft of the plan", "the final plan"),
        ("on Monday", "on Monday or Friday"),
    ],
    "numbers negations": [("pay 5 euro", "do not pay 50 euro")],
    "numbers negations words": [("Monday 3", "not Friday 4")],
    "": [  # the same
        ("I can't go", "I cannot go"),
        ("they don't know", "they do not know"),
        ("at \u22125 degrees", "at -5 degrees"),
        ("1,5 litres", "1.5 litres"),
        ("No. 5, 2023\u20132024", "no 5 2023-2024"),
        ("٤٧١١", "4711"),
        ("page 7", "page 7, page 7"),
        ("30 West 26th Street, Manhattan", "30 West 26 Street, Manhattan"),
        ("26e étage", "26. Etage"),
        ("le 1er mai", "le 1 mai"),
        ("Screw M8 x 40 stainless A4 100 pcs", "Screw, M8 x 40, A4, stainless, 100 pcs"),
        ("8 W", "8W"),
        ("1.5 l", "1.5l"),
        # They differ, and no guard sees it: names, words that are not listed, order, signs, numerals.
        ("Anna pays Ben", "Ben pays Anna"),
        ("on Tuesday", "on Sunday"),
        ("1 May", "1 June"),
        ("Monday or Friday", "Friday or Monday"),
        ("from 3 to 5", "from 5 to 3"),
        ("1,000 euro", "1.000 euro"),
        ("€5", "$5"),
        ("two days", "three days"),
        ("part Ⅲ", "part Ⅳ"),
        ("key 12-cafe-9", "key 12-cafd-9"),
        ("not A but B", "A but not B"),
        # Prefixes, endings and words that mean something else are not seen.
        ("it is possible", "it is impossible"),
        ("kouřím", "nekouřím"),
        ("geliyor", "gelmiyor"),
        ("il mange du pain", "il ne mange que du pain"),
    ],
}


def test_a_guard_sees_what_differs(shared_connection: Connection) -> None:
    assert sum(map(len, PAIRS.values())) >= 60
    for expected, pairs in PAIRS.items():
        for a, b in pairs:
            one, other = words(a), words(b)
            for these, those in ((one, other), (other, one)):
                seen = [*elements_apart(these, those, RULES)]
                assert seen == expected.split(), f"{a!r} {b!r}"
            for guard in GUARDS:
                guards = guards_of(
                    tokenize([a.encode(), b.encode()]), RULES._replace(guards=(guard,))
                )
                row = shared_connection.execute(
                    "SELECT textsim._differing(%(guards)s::text[], %(words)s, '{}', f.a, f.b), "
                    "textsim._guard(ARRAY[%(guard)s], %(words)s, '{}', f.a), "
                    "textsim._guard(ARRAY[%(guard)s], %(words)s, '{}', f.b) "
                    "FROM (SELECT textsim.normal_form(%(a)s) a, textsim.normal_form(%(b)s) b) f",
                    {"guards": GUARDS, "words": GUARD_WORDS, "guard": guard, "a": a, "b": b},
                ).fetchone()
                assert row == (expected.split(), *guards.tolist()), f"{guard}: {a!r} {b!r}"
                assert (guards[0] != guards[1]) == (guard in expected), f"{guard}: {a!r} {b!r}"
