"""What a message in a chat with cards means: tables of what people write."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.numbered_cases import (
    ASKED,
    COLOURS,
    DEPLOY,
    LATER,
    REASON,
    card,
    hear,
    question,
    readable,
    spell,
)

from pynchy.channels.numbered import (
    Answers,
    ChatMessage,
    NumberedCard,
    Reacted,
    Reading,
    aim,
    read,
    read_reaction,
)
from pynchy.model import AcceptsText, Answer, Reply
from pynchy.permissions.card import approval_question

ONE = card("ab12", DEPLOY)
MULTI = card("ab12", COLOURS)
WORDS = card("ab12", REASON)
OTHER = card("cd34", question("Which database?", "Postgres", "SQLite"))
BATCH = card("ab12", DEPLOY, COLOURS, REASON)

NO_OPTION = "hint: There is no option"
ONLY_ONE = "hint: Only one can be chosen"
UNCLEAR = "hint: That is not clear"


def agrees(found: str, expected: str) -> bool:
    """A hint need only begin as expected."""
    return found.startswith(expected) if expected.startswith("hint") else found == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", "ab12: Yes"),
        (" 2 \n", "ab12: No"),
        ("3.", "ab12: Later"),
        ("2)", "ab12: No"),
        ("(2)", "ab12: No"),
        ("[2]", "ab12: No"),
        ("2!", "ab12: No"),
        ("02", "ab12: No"),
        ("#2", "ab12: No"),
        ("2 2", "ab12: No"),
        ("1️⃣", "ab12: Yes"),
        ("3⃣", "ab12: Later"),
        ("２", "ab12: No"),
        ("②", "ab12: No"),
        ("❸", "ab12: Later"),
        ("٢", "ab12: No"),
        ("२", "ab12: No"),
        ("\u200b2\u200e", "ab12: No"),
        ("option 2", "ab12: No"),
        ("Option: 2", UNCLEAR),
        ("opción 3", "ab12: Later"),
        ("Nr. 2", "ab12: No"),
        ("вариант 1", "ab12: Yes"),
        ("选2", "ab12: No"),
        ("2番", "ab12: No"),
        ("two", "ab12: No"),
        ("DREI", "ab12: Later"),
        ("deux", "ab12: No"),
        ("tres", "ab12: Later"),
        ("três", "ab12: Later"),
        ("due", "ab12: No"),
        ("два", "ab12: No"),
        ("dwa", "ab12: No"),
        ("üç", "ab12: Later"),
        ("三", "ab12: Later"),
        ("둘", "ab12: No"),
        ("واحد", "ab12: Yes"),
        ("तीन", "ab12: Later"),
        ("option two", "ab12: No"),
    ],
    ids=readable,
)
def test_numbered_choice_is_taken_however_the_number_is_written(text: str, expected: str) -> None:
    assert agrees(hear(text, ONE), expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9", f"{NO_OPTION} 9. Reply 1–3, or your own words."),
        ("0", NO_OPTION),
        ("4", NO_OPTION),
        ("2027", f"{NO_OPTION} with that number"),
        ("9" * 5_000, f"{NO_OPTION} with that number"),
        ("1 9", NO_OPTION),
        ("ten", NO_OPTION),
        ("🔟", NO_OPTION),
        ("9️⃣", NO_OPTION),
        ("1, 2", ONLY_ONE),
        ("1 and 2", ONLY_ONE),
        ("1️⃣2️⃣", ONLY_ONE),
        ("1 or 2", ONLY_ONE),
        ("1 oder 2", ONLY_ONE),
        ("1-2", ONLY_ONE),
        ("yes, no", ONLY_ONE),
        ("yes & 2", ONLY_ONE),
        ("-1", UNCLEAR),
        ("2?", UNCLEAR),
        ("~2", UNCLEAR),
        ("1. No", "hint: “No” is not number 1"),
        ("yes, 9", NO_OPTION),
    ],
    ids=readable,
)
def test_numbered_reply_that_fits_nothing_keeps_the_question_open(text: str, expected: str) -> None:
    for heard in (hear(text, ONE), hear(f"#ab12 {text}", ONE), hear(text, ONE, quoted="card-ab12")):
        assert agrees(heard, expected)
        assert heard.endswith("#ab12")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yes", "ab12: Yes"),
        ("yes", "ab12: Yes"),
        ("YES!", "ab12: Yes"),
        ("  later… ", "ab12: Later"),
        ("ｙｅｓ", "ab12: Yes"),
        ("y\u200bes", "ab12: Yes"),
        ("1. Yes", "ab12: Yes"),
        ("2) no", "ab12: No"),
        ("“Yes”", "ab12: Yes"),
        ("yes yes", "ab12: Yes"),
        ("✅ yes", "ab12: Yes"),
        ("Yes, but on Monday", "ab12: “Yes, but on Monday”"),
        ("none of the 2", "ab12: “none of the 2”"),
        ("2 please", "ab12: “2 please”"),
        ("1.5", "ab12: “1.5”"),
        ("1:30", "ab12: “1:30”"),
        ("50%", "ab12: “50%”"),
        ("10am", "ab12: “10am”"),
        ("not 2", "ab12: “not 2”"),
        ('"9"', "ab12: “9”"),
        ("„2027“", "ab12: “2027”"),
        ("um", "ab12: “um”"),
        ("👍", "ab12: “👍”"),
        ("yes or no", "ab12: “yes or no”"),
        ("/etc/hosts", "ab12: “/etc/hosts”"),
        ("approve it", "ab12: “approve it”"),
        ("first line\nsecond line", "ab12: “first line\nsecond line”"),
        ("ＭＡＹＢＥ？", "ab12: “ＭＡＹＢＥ？”"),
    ],
    ids=readable,
)
def test_numbered_label_or_words_in_a_direct_chat_answer(text: str, expected: str) -> None:
    assert hear(text, ONE) == expected


@pytest.mark.parametrize(
    ("labels", "text", "expected"),
    [
        (("3", "1", "2"), "1", "hint: That could mean several options"),
        (("3", "1", "2"), "①", "hint: That could mean several options"),
        (("3", "1", "2"), "2. 1", "ab12: 1"),
        (("3", "1", "2"), "1. 1", "hint: “1” is not number 1"),
        (("2", "1"), "2", "hint: That could mean several options"),
        (("2", "1"), "1) 2", "ab12: 2"),
        (("1", "2"), "2", "ab12: 2"),
        (("2", "4", "8"), "8", "ab12: 8"),
        (("2", "4", "8"), "3", "ab12: 8"),
        (("Two", "One"), "two", "hint: That could mean several options"),
        (("Option 2", "Option 1"), "option 2", "hint: That could mean several options"),
        (("42", "7"), "7", "ab12: 7"),
        (("Cancel", "Go on"), "cancel", "ab12: Cancel"),
        (("Skip it", "Skip"), "skip", "ab12: Skip"),
        (("One", "Two"), "two", "ab12: Two"),
        (("1 and 2", "Neither"), "1 and 2", "ab12: 1 and 2"),
        (("Yes (recommended)", "No"), "yes", "ab12: Yes (recommended)"),
        (("✅ Ship", "❌ Hold"), "hold", "ab12: ❌ Hold"),
        (("Straße", "Platz"), "STRASSE", "ab12: Straße"),
        (("Ärger", "Freude"), "a\u0308rger", "ab12: Ärger"),
        (("C++", "C#"), "c#", "ab12: C#"),
        (("C++", "C#"), "c", "hint: That could be several of them"),
        (("A!", "A."), "a", "hint: That could be several of them"),
        (("A!", "A."), "A.", "ab12: A."),
        (("No, delete it", "Yes, keep it"), "no", "hint: That is not clear (do you mean 1?)"),
        (("Delete nothing", "Delete all"), "delete", f"{UNCLEAR} (do you mean 1 or 2?)"),
        (("Nothing", "Now"), "no", "hint: Did you mean “Now”?"),
        (("Nothing", "Later"), "no", "ab12: “no”"),
        (("Fix #1234", "Leave it"), "fix #1234", "ab12: Fix #1234"),
        (("Fix #wxyz", "Leave it"), "fix #wxyz", "ab12: Fix #wxyz"),
        (("2 #wxyz", "Leave it"), "2 #wxyz", "ab12: 2 #wxyz"),
        (("Fix #1234", "Leave it"), "fix ＃1234", "ab12: Fix #1234"),
    ],
    ids=readable,
)
def test_numbered_label_that_is_no_other_options_number_is_never_guessed(
    labels: tuple[str, ...], text: str, expected: str
) -> None:
    assert agrees(hear(text, card("ab12", question("Which?", *labels))), expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", "ab12: Red"),
        ("1, 3", "ab12: Red+Green"),
        ("3,1", "ab12: Green+Red"),
        ("1 3", "ab12: Red+Green"),
        ("1;3", "ab12: Red+Green"),
        ("1/3", "ab12: Red+Green"),
        ("1 & 3", "ab12: Red+Green"),
        ("1+3", "ab12: Red+Green"),
        ("1.\n3.", "ab12: Red+Green"),
        ("(1) (3)", "ab12: Red+Green"),
        ("1, 2, and 3", "ab12: Red+Blue+Green"),
        ("1 und 3", "ab12: Red+Green"),
        ("1 et 3", "ab12: Red+Green"),
        ("1 y 3", "ab12: Red+Green"),
        ("1 и 3", "ab12: Red+Green"),
        ("1 和 3", "ab12: Red+Green"),
        ("1と3", "ab12: Red+Green"),
        ("1、3", "ab12: Red+Green"),
        ("١، ٣", "ab12: Red+Green"),
        ("１，３", "ab12: Red+Green"),
        ("1️⃣3️⃣", "ab12: Red+Green"),
        ("①③", "ab12: Red+Green"),
        ("one and three", "ab12: Red+Green"),
        ("options 1 and 3", "ab12: Red+Green"),
        ("3 3 3", "ab12: Green"),
        ("red", "ab12: Red"),
        ("red, green", "ab12: Red+Green"),
        ("red and green", "ab12: Red+Green"),
        ("rot und grün", "ab12: “rot und grün”"),
        ("red, and 3", "ab12: Red+Green"),
        ("Red; 2", "ab12: Red+Blue"),
        ("red, purple", "ab12: “red, purple”"),
        ("1, and grey", "ab12: “1, and grey”"),
        ("all", "ab12: “all”"),
        ("1, 7", NO_OPTION),
        ("red, 7", NO_OPTION),
        ("1-3", UNCLEAR),
        ("1 or 3", UNCLEAR),
        ("1 and", UNCLEAR),
    ],
    ids=readable,
)
def test_numbered_choice_of_several_takes_lists(text: str, expected: str) -> None:
    assert agrees(hear(text, MULTI), expected)


@pytest.mark.parametrize(
    "word",
    [
        "cancel",
        "Cancel!",
        "SKIP",
        "dismiss",
        "decline",
        "never mind",
        "Never  mind.",
        "abbrechen",
        "Überspringen",
        "uberspringen",
        "annuler",
        "laisse tomber",
        "cancelar",
        "déjalo",
        "pular",
        "annulla",
        "laat maar",
        "pomiń",
        "hoppa över",
        "iptal",
        "отмена",
        "Пропустить",
        "скасувати",
        "إلغاء",
        "ביטול",
        "रद्द करें",
        "取消",
        "跳过",
        "キャンセル",
        "ｷｬﾝｾﾙ",
        "취소",
    ],
    ids=readable,
)
def test_numbered_cancel_word_declines(word: str) -> None:
    assert hear(word, ONE) == "declines ab12"
    assert hear(f"#ab12 {word}", ONE, OTHER, private=False) == "declines ab12"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cancel: not before Monday", "declines ab12: not before Monday"),
        ("取消：以后再说", "declines ab12: 以后再说"),
        ("cancel:", "declines ab12"),
        ("cancel the order instead", "ab12: “cancel the order instead”"),
        ("don't skip", "ab12: “don't skip”"),
    ],
    ids=readable,
)
def test_numbered_cancel_takes_a_reason_and_no_sentence(text: str, expected: str) -> None:
    assert hear(text, ONE) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", "ab12: “3”"),
        ("yes", "ab12: “yes”"),
        ("because of 7", "ab12: “because of 7”"),
        ('"quoted"', 'ab12: “"quoted"”'),
        ("skip", "declines ab12"),
        ("#ab12 3", "ab12: “3”"),
    ],
    ids=readable,
)
def test_numbered_question_without_options_takes_every_word(text: str, expected: str) -> None:
    assert hear(text, WORDS) == expected


@pytest.mark.parametrize(
    ("text", "quoted", "expected"),
    [
        ("#ab12 1", None, "ab12: Yes"),
        ("#AB12 1", None, "ab12: Yes"),
        ("＃ａｂ１２　１", None, "ab12: Yes"),
        ("#ab12: 1", None, "ab12: Yes"),
        ("#ab12, later", None, "ab12: Later"),
        ("#ab12\nlater", None, "ab12: Later"),
        ("# ab12 1", None, "ab12: Yes"),
        ("#ab12 - 1", None, "ab12: Yes"),
        ("1 #ab12", None, "ab12: Yes"),
        ("not today #ab12.", None, "ab12: “not today”"),
        ("ab12 1", None, "ab12: Yes"),
        ("ab12: on Monday", None, "ab12: “on Monday”"),
        ("ab12 on Monday", None, "ab12: “on Monday”"),
        ("#cd34 1", None, "cd34: Postgres"),
        ("#ab12 /status", None, "ab12: “/status”"),
        ("approve #ab12", None, "ab12: “approve”"),
        ("#ab12", None, "hint: What is your answer? Reply 1–3"),
        ("#ab13 1", None, "hint: No question with the id #ab13 is open here.\nOpen:\n#ab12"),
        ("1 #ab13", None, "hint: No question with the id #ab13"),
        ("#ab12 1\n#cd34 2", None, "hint: Your message names several questions (#ab12, #cd34)"),
        ("#ab12 1 #cd34", None, "hint: Your message names several"),
        ("#ab12 like #cd34 but faster", None, "ab12: “like #cd34 but faster”"),
        ("1", "card-cd34", "cd34: Postgres"),
        ("neither", "card-cd34", "cd34: “neither”"),
        ("skip", "card-cd34", "declines cd34"),
        ("#ab12 1", "card-cd34", "ab12: Yes"),
        ("1", None, "hint: Which question is that for?"),
        ("#2", None, "hint: Which question is that for?"),
        ("cancel", None, "hint: Which question is that for?"),
        ("three", None, "hint: Which question is that for?"),
        ("Let us wait", None, "hint: Which question is that for?"),
        ("postgres", None, "cd34: Postgres"),
        ("later", None, "ab12: Later"),
        ("1", "somebody-else", "hint: Which question is that for?"),
        ("Let us wait", "somebody-else", "hint: Which question is that for?"),
    ],
    ids=readable,
)
@pytest.mark.parametrize("turned", [False, True], ids=["in order", "in reverse"])
def test_numbered_reply_among_several_cards_needs_a_target(
    text: str, quoted: str | None, expected: str, *, turned: bool
) -> None:
    cards = [OTHER, ONE] if turned else [ONE, OTHER]
    if turned and "\n#" in expected:
        expected = expected.partition("\n")[0]

    assert agrees(hear(text, *cards, quoted=quoted), expected)


@pytest.mark.parametrize(
    ("text", "quoted", "expected"),
    [
        ("2", None, "ab12: No"),
        ("２", None, "ab12: No"),
        ("yes", None, "ab12: Yes"),
        ("9", None, NO_OPTION),
        ("1 2", None, ONLY_ONE),
        ("yes I think so too", None, "-"),
        ("two", None, "-"),
        ("due", None, "-"),
        ("yes?", None, "-"),
        ("lunch at 12?", None, "-"),
        ("can somebody look at #ab12?", None, "-"),
        ("#team lunch", None, "-"),
        ("#ab13 1", None, "hint: No question with the id #ab13"),
        ("skip", None, "hint: Is that for the question below?"),
        ("I think so", "card-ab12", "ab12: “I think so”"),
        ("two", "card-ab12", "ab12: No"),
        ("#wow yes", "card-ab12", "ab12: “#wow yes”"),
        ("#wonder why", "card-ab12", "ab12: “#wonder why”"),
        ("#ab13 yes", "card-ab12", "hint: No question with the id #ab13"),
        ("#ab12 I think so", None, "ab12: “I think so”"),
        ("I think so #ab12", None, "ab12: “I think so”"),
        ("I think so", "somebody-else", "-"),
        ("2", "somebody-else", "-"),
        ("/status", None, "-"),
    ],
    ids=readable,
)
def test_numbered_prose_in_a_group_is_no_answer_unless_it_names_the_card(
    text: str, quoted: str | None, expected: str
) -> None:
    assert agrees(hear(text, ONE, private=False, quoted=quoted), expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("good morning", "-"),
        ("2", "hint: Which question is that for?"),
        ("cancel", "hint: Which question is that for?"),
        ("yes", "ab12: Yes"),
        ("yes sir", "-"),
        ("1: 2, 2: 1", "hint: Which question is that for?"),
    ],
    ids=readable,
)
def test_numbered_group_with_several_cards_is_left_in_peace(text: str, expected: str) -> None:
    assert agrees(hear(text, ONE, OTHER, private=False), expected)


@pytest.mark.parametrize(
    "text",
    [
        "/status",
        "/status now",
        "/help@bot",
        "!deploy",
        "!deploy prod",
        "approve ab",
        "Deny ab12x",
        "approve #zz99",
        "reject k7",
        "",
        "   ",
        "\n",
        "\u3000",
    ],
    ids=readable,
)
@pytest.mark.parametrize("quoted", [None, "card-ab12"], ids=["alone", "quoting"])
@pytest.mark.parametrize("private", [True, False], ids=["direct", "group"])
def test_numbered_commands_and_captionless_pictures_are_never_swallowed(
    text: str, quoted: str | None, *, private: bool
) -> None:
    for one in (ONE, MULTI, WORDS, BATCH):
        assert hear(text, one, private=private, quoted=quoted) == "-"


def test_numbered_label_that_looks_like_a_command_is_asked_back() -> None:
    trap = card("ab12", question("Which?", "/status", "approve k7"))

    assert hear("/status", trap).startswith("hint: Is that for the question below?")
    assert hear("approve k7", trap).startswith("hint: Is that for the question below?")
    assert hear("/status", trap, quoted="card-ab12") == "ab12: /status"
    assert hear("#ab12 approve k7", trap) == "ab12: approve k7"


def test_numbered_verdict_on_the_id_of_a_card_is_for_that_card() -> None:
    gate = card("ab12", question("Ship?", "Approve", "Deny"))

    assert hear("approve ab12", gate, OTHER) == "ab12: Approve"
    assert hear("deny #ab12", gate, OTHER, private=False) == "ab12: Deny"
    assert hear("approve cd34", gate, OTHER) == "-"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1: 2, 2: 1 3", "ab12: 1=No 2=Red+Green"),
        ("1: 2, 2: 1 3, 3: because", "ab12: 1=No 2=Red+Green 3=“because”"),
        ("1: 2 2: 1 3", "ab12: 1=No 2=Red+Green"),
        ("1:2,2:1", "ab12: 1=No 2=Red"),
        ("1=2; 2=1", "ab12: 1=No 2=Red"),
        ("1) yes\n2) red, blue\n3) it is time", "ab12: 1=Yes 2=Red+Blue 3=“it is time”"),
        ("2: 3\n1: later", "ab12: 1=Later 2=Green"),
        ("Q1: 2, Q3: why not", "ab12: 1=No 3=“why not”"),
        ("question 2: blue", "ab12: 2=Blue"),
        ("１：２、２：１", "ab12: 1=No 2=Red"),
        ("1️⃣: 2", "ab12: 1=No"),
        ("1: 2\n\n2: 1", "ab12: 1=No 2=Red"),
        ("3: at 12:30, not 1:15", "ab12: 3=“at 12:30, not 1:15”"),
        ("3: see 7, 9: or so", "ab12: 3=“see 7, 9: or so”"),
        ("2\n1 3\nfor fun", "ab12: 1=No 2=Red+Green 3=“for fun”"),
        ("no", "ab12: 1=No"),
        ("2", "ab12: 1=No"),
        ("Let us wait", "ab12: 1=“Let us wait”"),
        ("green", "ab12: 2=Green"),
        ("gren", "hint: Question 2: did you mean “Green”? Say “2: 3” for number 3"),
        ("yse", "hint: Question 1: did you mean “Yes”? Say “1: 1” for number 1"),
        ('1: "yse"', "ab12: 1=“yse”"),
        ("cancel", "declines ab12"),
        ("1 2 3", "hint: 3 questions were asked"),
        ("no, red, because", "hint: 3 questions were asked"),
        ("1: 2\nand red", "hint: 3 questions were asked"),
        ("2\n1 3", "hint: 3 questions were asked"),
        ("1:30", "hint: 3 questions were asked"),
        ("1:", "hint: 3 questions were asked"),
        ("5: 1", "hint: There is no question 5: there are 1–3"),
        ("0: 1", "hint: There is no question 0"),
        ("1: 1, 1: 2", "hint: Question 1 has two answers"),
        ("1: 9", "hint: Question 1: there is no option 9. Reply 1–3"),
        ("1: 1, 2: 9", "hint: Question 2: there is no option 9"),
        ("1: 1 2", "hint: Question 1: only one can be chosen"),
        ("2: skip", "hint: One question alone cannot be declined"),
    ],
    ids=readable,
)
@pytest.mark.parametrize("how", ["alone", "by id", "by quotation"])
def test_numbered_questions_are_answered_in_one_reply_or_in_turn(
    text: str, expected: str, how: str
) -> None:
    quoted = "card-ab12" if how == "by quotation" else None
    text = f"#ab12 {text}" if how == "by id" else text

    assert agrees(hear(text, BATCH, quoted=quoted), expected)


@pytest.mark.parametrize(
    ("answered", "text", "expected"),
    [
        ({1}, "2", "ab12: 2=Blue"),
        ({1}, "1 3", "hint: 3 questions were asked"),
        ({1, 3}, "1 3", "ab12: 2=Red+Green"),
        ({1, 2}, "yes", "ab12: 3=“yes”"),
        ({1, 2}, "2", "ab12: 3=“2”"),
        ({1, 2}, "1: yes", "ab12: 1=Yes"),
        ({2}, "yes\nfor fun", "ab12: 1=Yes 3=“for fun”"),
        ({1}, "yes", "ab12: 2=“yes”"),
        ({1, 2, 3}, "no", "ab12: 1=No"),
    ],
    ids=readable,
)
def test_numbered_parts_that_are_answered_are_passed_over(
    answered: set[int], text: str, expected: str
) -> None:
    assert agrees(hear(text, replace(BATCH, answered=frozenset(answered))), expected)


def test_numbered_label_of_two_questions_is_for_the_first() -> None:
    twins = card("ab12", DEPLOY, question("Sure?", "Yes", "No"), question("Really?", "Yes", "Hm"))

    assert hear("yes", twins) == "ab12: 1=Yes"
    assert hear("hm", twins) == "ab12: 3=Hm"
    assert hear("no", replace(twins, answered=frozenset({1}))) == "ab12: 2=No"


def test_numbered_label_of_two_later_questions_is_asked_back() -> None:
    twins = card("ab12", REASON, question("Sure?", "Yes"), question("Really?", "Yes"))

    assert hear("yes", twins).startswith("hint: 3 questions were asked")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1: 2, 2: 1 3", "ab12: 1=No 2=Red+Green"), ("1: milk\n2: eggs", "-"), ("3: for fun", "-")],
)
def test_numbered_parts_in_a_group_must_be_choices(text: str, expected: str) -> None:
    assert hear(text, BATCH, private=False) == expected


@pytest.mark.parametrize("text", ["1", "yes", "skip", "Let us wait"])
def test_numbered_quotation_of_something_else_is_asked_back_in_a_direct_chat(text: str) -> None:
    heard = hear(text, ONE, quoted="somebody-else")

    assert heard.startswith(
        f"hint: Is that for the question below? Then begin with its id: “#ab12 {text}”"
    )
    assert hear(text, ONE, private=False, quoted="somebody-else") == "-"


def test_numbered_message_older_than_the_question_is_no_answer() -> None:
    before = ASKED - timedelta(seconds=1)

    assert hear("1", ONE, at=before) == "-"
    assert hear("sounds good", ONE, at=before) == "-"
    assert hear("1", ONE, at=ASKED) == "ab12: Yes"
    assert hear("#ab12 1", ONE, at=before).startswith("hint: Your message is older")


def test_numbered_message_from_before_the_second_question_answers_the_first() -> None:
    second = replace(OTHER, asked_at=LATER + timedelta(minutes=1))

    assert hear("1", ONE, second) == "ab12: Yes"


@pytest.mark.parametrize("quoted", [None, "card-cd34"], ids=["by id", "by quotation"])
def test_numbered_reply_to_a_card_that_is_over_is_told_so(quoted: str | None) -> None:
    over = replace(OTHER, over=True)
    text = "1" if quoted else "#cd34 1"

    assert hear(text, ONE, over, quoted=quoted) == "late: cd34"
    assert hear(text, ONE, replace(over, questions=()), quoted=quoted) == "late: cd34"


def test_numbered_card_that_is_over_is_no_longer_open() -> None:
    over = replace(OTHER, over=True)

    assert hear("2", ONE, over) == "ab12: No"
    assert hear("postgres", ONE, over) == "ab12: “postgres”"
    assert hear("2", over) == "-"


def test_numbered_reply_right_after_another_card_ended_elsewhere_is_asked_back() -> None:
    over = replace(OTHER, over=True, ended_elsewhere_at=LATER - timedelta(seconds=3))

    assert hear("1", ONE, over).startswith("hint: Is that for the question below?")
    assert hear("1", ONE, over, at=LATER + timedelta(minutes=1)) == "ab12: Yes"
    assert hear("#ab12 1", ONE, over) == "ab12: Yes"
    assert hear("1", over) == "late: cd34"
    assert hear("1", replace(over, questions=())) == "late: cd34"
    assert hear("thanks", over) == "-"


def test_numbered_id_of_letters_alone_is_not_read_out_of_a_sentence() -> None:
    team = card("team", DEPLOY)

    assert hear("team lunch is at one", team, OTHER, private=False) == "-"
    assert hear("team 1", team, OTHER, private=False) == "team: Yes"
    assert hear("team: we should wait", team, OTHER, private=False) == "team: “we should wait”"
    assert hear("team lunch", replace(team, over=True, questions=()), private=False) == "-"


def react(emoji: str, *cards: object, on: str = "card-ab12") -> str:
    reading: Reading = read_reaction(Reacted(emoji, on, LATER), cards)  # type: ignore[arg-type]
    return spell(reading)


@pytest.mark.parametrize(
    ("emoji", "expected"),
    [
        ("1️⃣", "ab12: Yes"),
        ("3⃣", "ab12: Later"),
        ("②", "ab12: No"),
        ("9️⃣", NO_OPTION),
        ("0️⃣", NO_OPTION),
        ("🔟", NO_OPTION),
        ("👍", "-"),
        ("❌", "-"),
        ("#️⃣", "-"),
        ("1", "-"),
        ("", "-"),
        ("1️⃣2️⃣", "-"),
        ("x" * 100_000, "-"),
    ],
    ids=readable,
)
def test_numbered_keycap_on_the_card_answers_a_single_choice(emoji: str, expected: str) -> None:
    assert agrees(react(emoji, ONE, OTHER), expected)


def test_numbered_keycap_never_sends_a_choice_of_several() -> None:
    assert react("1️⃣", MULTI).startswith("hint: A reaction does not answer this one")
    assert react("1️⃣", WORDS).startswith("hint: A reaction does not answer this one")
    assert react("1️⃣", BATCH).startswith("hint: 3 questions were asked")


def test_numbered_keycap_on_anything_else_is_left_alone() -> None:
    assert react("1️⃣", ONE, on="somebody-else") == "-"
    assert react("1️⃣", replace(ONE, over=True, questions=())) == "late: ab12"
    assert react("1️⃣", replace(ONE, asked_at=LATER + timedelta(1))).startswith("hint: Your")


@pytest.mark.parametrize("answered", [set(), {1}])
def test_numbered_hint_for_one_of_several_questions_leads_to_that_question(
    answered: set[int],
) -> None:
    trap = card("ab12", question("One?", "Keep", "Delete all"), question("Two?", "2", "1"))
    trap = replace(trap, answered=frozenset(answered))

    hint = hear("2: 2", trap)

    assert "“2: 1. 2” for number 1" in hint
    assert hear("2: 1. 2", trap) == "ab12: 2=2"


def test_numbered_keycap_that_is_the_label_of_another_option_is_asked_back() -> None:
    assert react("1️⃣", card("ab12", question("?", "3", "1", "2"))).startswith(
        "hint: That could mean"
    )
    assert react("2️⃣", card("ab12", question("?", "1", "2"))) == "ab12: 2"


@pytest.mark.parametrize("text", ["2", "cancel"])
def test_numbered_label_that_could_be_a_number_or_a_cancel_does_not_choose_the_card(
    text: str,
) -> None:
    odd = card("ef56", question("?", "2", "Cancel"))

    assert hear(text, ONE, odd).startswith("hint: Which question is that for?")
    assert agrees(
        hear(text, odd),
        "ef56: Cancel" if text == "cancel" else "hint: That could mean several options",
    )


def test_numbered_reply_names_every_open_card_when_it_asks_which() -> None:
    heard = hear("1", ONE, OTHER)

    assert "\n#ab12 g: Deploy?" in heard
    assert "\n#cd34 g: Which database?" in heard


CATCHING = card(
    "ev1l", question("Name it?", "Yes", "Ok", "Later", "Go ahead", "Fix #wxyz"), group="evil"
)


@pytest.mark.parametrize("text", ["yes", "Ok", "later!", "go ahead", "fix #wxyz"])
@pytest.mark.parametrize("private", [True, False], ids=["direct", "group"])
@pytest.mark.parametrize(
    "meant",
    [
        card("ab12", REASON),
        card("ab12", question("Release?", "Ship", "Wait")),
        card("ab12", replace(DEPLOY, accepts_text=AcceptsText.NO)),
        card("ab12", COLOURS, REASON),
        card("ab12", approval_question("Deploy?", "", "", "")),
    ],
    ids=["own words", "other labels", "labels alone", "batch", "approval"],
)
def test_numbered_label_of_a_hostile_card_catches_no_answer_for_another_group(
    meant: NumberedCard, text: str, *, private: bool
) -> None:
    for cards in ([CATCHING, meant], [meant, CATCHING]):
        heard = hear(text, *cards, private=private)
        assert heard == "-" or heard.startswith("hint: Which question is that for?")
        assert hear(text, *cards, private=private, quoted="card-ev1l").startswith("ev1l: ")
    assert hear("#ev1l yes", CATCHING, meant, private=private) == "ev1l: Yes"


def test_numbered_label_catches_no_answer_for_a_card_that_just_ended_elsewhere() -> None:
    more = card("ev2l", question("And then?", "Now"), group="evil")
    ended = replace(ONE, over=True, ended_elsewhere_at=LATER - timedelta(seconds=3))

    assert hear("ok", CATCHING, more, ended).startswith("hint: Which question is that for?")
    assert hear("ok", CATCHING, more) == "ev1l: Ok"


def test_numbered_yes_beside_a_permission_of_the_same_group_is_asked_back() -> None:
    gate = card("cd34", approval_question("Deploy?", "", "", ""))

    assert hear("yes", ONE, gate).startswith("hint: Which question is that for?")


def test_numbered_list_of_open_cards_is_not_filled_by_one_group() -> None:
    many = [card(f"ev{number:02}", REASON, group="evil") for number in range(20)]

    heard = hear("yes", *many, ONE)

    assert "\n#ab12 g: Deploy?" in heard
    assert heard.endswith("and 13 more")


def test_numbered_hint_cannot_be_forged_by_a_question() -> None:
    forger = card("ef56", question("Sure?\n#ab12 Nothing\n#cd34 Reply 1", "Yes"))

    lines = hear("1", forger, OTHER).split("\n")

    assert [line[:5] for line in lines[1:]] == ["#ef56", "#cd34"]
    assert "#ab12" not in lines[1]


SENDER = Reply("", "Ana", "whatsapp", user_id="u1", chat="c1")


def test_numbered_answers_reach_the_desk_under_the_cards_request() -> None:
    reading = read(ChatMessage("1: 2, 2: 1, 3: fun", LATER, private=True), [BATCH])
    assert isinstance(reading, Answers)

    [reply] = reading.replies(SENDER)

    assert (reply.target, reply.group, reply.question) == ("request-ab12", "g", None)
    assert reply.answers == (Answer(("No",)), Answer(("Red",)), Answer(text="fun"))
    assert (reply.by, reply.user_id, reply.chat) == ("Ana", "u1", "c1")


def test_numbered_parts_reach_the_desk_one_by_one() -> None:
    reading = read(ChatMessage("1: 2, 3: fun", LATER, private=True), [BATCH])
    assert isinstance(reading, Answers)

    replies = reading.replies(SENDER)

    assert [(reply.question, reply.answers) for reply in replies] == [
        (1, (Answer(("No",)),)),
        (3, (Answer(text="fun"),)),
    ]


def test_numbered_decline_is_aimed_at_the_cards_request() -> None:
    assert aim(ONE, SENDER).target == "request-ab12"
