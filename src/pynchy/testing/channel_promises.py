"""What every channel promises, each as a small play with a person, a service and a host.

A promise waits for what must happen, and never for what must not: where nothing may happen, it
lets something else happen after it and then looks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

from pynchy.errors import ChannelUnavailable, InvalidReply, NotAllowed, PartTaken, UnknownQuestion
from pynchy.model import Answer, Ending, Option, OutcomeKind, PendingQuestion, Question
from pynchy.testing.channel_host import DEPLOY, HostRole, PromiseBroken, ShownQuestion, expect
from pynchy.testing.channel_world import Ability, ChannelWorld, NothingToDo, SeenCard
from pynchy.testing.fakes import NOON

COLOUR = Question("Which colour?", options=(Option("Red", "as fire"), Option("Blue", "as the sea")))
SIZE = Question("Which size?", options=(Option("Small"), Option("Large")))
EXTRAS = Question(
    "Which extras?", options=(Option("Wheels"), Option("Roof"), Option("Bell")), multi_select=True
)
NAME = Question("What name?")
HOSTILE = Question(
    "<!channel> @everyone <https://evil.example|click here>",
    options=(Option("<@U1> yes", "<!here> @all"), Option("[no](https://evil.example)")),
)

Play = Callable[[HostRole], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Promise:
    """One thing that every channel does which can."""

    play: Play
    needs: frozenset[Ability]
    opened: bool

    def __str__(self) -> str:
        return self.play.__name__

    async def check(self, world: ChannelWorld) -> None:
        """Raise PromiseBroken, or whatever the channel raises, unless it is kept."""
        host = HostRole(world)
        if self.opened:
            await host.open()
        await self.play(host)


_promises: list[Promise] = []


def _promise(*needs: Ability, opened: bool = True) -> Callable[[Play], Play]:
    def note(play: Play) -> Play:
        _promises.append(Promise(play, frozenset(needs), opened))
        return play

    return note


def promises(cannot: Iterable[Ability] = ()) -> list[Promise]:
    """Return the promises of a channel that cannot do these things."""
    missing = frozenset(cannot)
    return [promise for promise in PROMISES if missing.isdisjoint(promise.needs)]


@_promise()
async def a_card_shows_everything_that_is_asked(host: HostRole) -> None:
    asked = await host.show(COLOUR, NAME)
    questions = (COLOUR, NAME)
    options = [option for question in questions for option in question.options]
    words = [q.text for q in questions] + [
        word for o in options for word in (o.label, o.description)
    ]
    missing = [word for word in words if word not in asked.card.text]
    expect(not missing, f"the card does not show {missing}")


@_promise()
async def a_choice_arrives_as_what_was_chosen(host: HostRole) -> None:
    for label in ("No", "Yes"):
        asked = await host.show(DEPLOY)
        await host.world.choose(host.world.first, asked.card, label)
        answers = await host.answered(asked)
        expect(answers == (Answer((label,)),), f"{label} was chosen, and {answers} arrived")


@_promise()
async def a_reply_says_who_replied_and_where(host: HostRole) -> None:
    asked = await host.show_answered()
    [reply] = host.replies(asked)
    world = host.world
    expect(reply.user_id == world.first, f"{reply.user_id} is not the user id {world.first}")
    expect(reply.channel == world.channel.name, f"{reply.channel} is not the channel's name")
    expect(reply.chat == world.chat, f"{reply.chat} is not the chat")
    expect(reply.by, "the reply has no name of a person")


@_promise(Ability.CHOOSE_SEVERAL)
async def several_options_can_be_chosen(host: HostRole) -> None:
    asked = await host.show(EXTRAS)
    await host.world.choose(host.world.first, asked.card, "Wheels", "Bell")
    answers = await host.answered(asked)
    expect(answers == (Answer(("Wheels", "Bell")),), f"{answers} arrived")


@_promise(Ability.OWN_WORDS)
async def own_words_arrive_as_they_were_written(host: HostRole) -> None:
    text = "Peter & <Paul>, *both*"
    for question in (NAME, DEPLOY):
        asked = await host.show(question)
        await host.world.write(host.world.first, asked.card, text)
        answers = await host.answered(asked)
        expect(answers == (Answer(text=text),), f"{answers} arrived")


@_promise(Ability.PARTS)
async def the_questions_of_a_card_are_answered_one_after_another(host: HostRole) -> None:
    asked = await host.show(COLOUR, SIZE)
    await host.world.choose_part(host.world.first, asked.card, 2, "Large")
    await host.until(lambda: host.replies(asked), "the first part")
    expect(host.handler.questions[asked.request_id].ending is None, "a part ended the question")
    await host.world.choose_part(host.world.first, asked.card, 1, "Blue")
    answers = await host.answered(asked)
    expect(answers == (Answer(("Blue",)), Answer(("Large",))), f"{answers} arrived")


@_promise(Ability.DECLINE)
async def a_person_can_decline(host: HostRole) -> None:
    asked = await host.show(DEPLOY)
    await host.world.decline(host.world.first, asked.card)
    await host.answered(asked)
    ending = host.handler.questions[asked.request_id].ending
    expect(ending and ending.outcome is OutcomeKind.DECLINED, f"it ended as {ending}")


@_promise()
async def a_refused_reply_is_told_and_the_question_stays(host: HostRole) -> None:
    asked = await host.show(DEPLOY)
    host.handler.refuse(InvalidReply("only before noon"))
    await host.world.choose(host.world.first, asked.card, "Yes")
    await host.is_told(host.world.first, "only before noon")
    await host.world.choose(host.world.first, asked.card, "No")
    answers = await host.answered(asked)
    expect(answers == (Answer(("No",)),), f"{answers} arrived")


@_promise()
async def every_refusal_is_told(host: HostRole) -> None:
    refusals = (PartTaken("taken by Ben"), UnknownQuestion("not known"), NotAllowed("not for you"))
    for count, refusal in enumerate(refusals, start=1):
        asked = await host.show(DEPLOY)
        host.handler.refuse(refusal)
        await host.world.choose(host.world.first, asked.card, "Yes")
        await host.is_told(host.world.first, count=count)


@_promise(Ability.TELL_ALONE)
async def a_refusal_is_told_to_that_person_alone(host: HostRole) -> None:
    asked = await host.show(DEPLOY)
    host.handler.refuse(InvalidReply("only before noon"))
    await host.world.choose(host.world.first, asked.card, "Yes")
    await host.is_told(host.world.first, "only before noon")
    expect(not host.world.told(host.world.second), "another person was told as well")
    expect("only before noon" not in host.world.sees(), "everybody can see the refusal")


@_promise(Ability.TELL_APART)
async def a_person_who_may_not_answer_does_not(host: HostRole) -> None:
    asked = await host.show(DEPLOY)
    await host.world.choose(host.world.stranger, asked.card, "Yes")
    await host.world.choose(host.world.first, asked.card, "No")
    answers = await host.answered(asked)
    expect(answers == (Answer(("No",)),), f"{answers} arrived")


@_promise(Ability.TELL_STRANGERS)
async def a_person_who_may_not_answer_is_told_so(host: HostRole) -> None:
    asked = await host.show(DEPLOY)
    await host.world.choose(host.world.stranger, asked.card, "Yes")
    await host.is_told(host.world.stranger)


@_promise(Ability.REPEAT_EVENTS)
async def what_the_service_tells_twice_counts_once(host: HostRole) -> None:
    asked = await host.show_answered()
    await host.world.repeat()
    await host.show_answered()
    count = len(host.replies(asked))
    expect(count == 1, f"one reply arrived {count} times")
    expect(not host.world.told(host.world.first), "the person was told of a refusal")


@_promise(Ability.LOSE_REPLIES)
async def a_card_that_may_be_there_twice_says_so_and_one_answer_closes_all(host: HostRole) -> None:
    pending = host.next_question(DEPLOY)
    await host.world.lose_reply()
    try:
        asked = await host.show_again(pending, repeated=False)
    except ChannelUnavailable:
        asked = await host.show_again(pending, repeated=True)
    copies = host.copies(pending)
    texts = {card.text for card in copies}
    expect(len(texts) == len(copies), "the same card is there twice, and none says so")
    await host.world.choose(host.world.first, copies[0], "Yes")
    await host.answered(asked)
    await host.settle(asked)
    if Ability.CHANGE_CARDS not in host.world.cannot:
        await host.until(lambda: _all_over(host, pending), "all copies to be over")
    await _try_in_vain(host, asked, copies)


def _all_over(host: HostRole, pending: PendingQuestion) -> bool:
    return not any(card.takes_answers for card in host.copies(pending))


async def _try_in_vain(host: HostRole, asked: ShownQuestion, cards: Iterable[SeenCard]) -> None:
    for card in cards:
        try:
            await host.world.choose(host.world.second, card, "No")
        except NothingToDo:
            continue
        await host.is_told(host.world.second)
    expect(len(host.replies(asked)) == 1, "a card that was over took another answer")


@_promise()
async def a_click_after_a_restart_counts(host: HostRole) -> None:
    asked = await host.show(DEPLOY)
    await host.restart()
    await host.world.choose(host.world.first, asked.card, "Yes")
    answers = await host.answered(asked)
    expect(answers == (Answer(("Yes",)),), f"{answers} arrived")


@_promise()
async def a_card_of_before_a_restart_can_be_settled(host: HostRole) -> None:
    asked = await host.show(DEPLOY)
    await host.restart()
    ending = Ending(OutcomeKind.ANSWERED, NOON, (Answer(("Yes",)),), by="Carla", channel="local")
    await host.settle(asked, ending)
    await host.sees_over(asked, "Carla")


@_promise()
async def a_settled_card_says_who_answered_what(host: HostRole) -> None:
    asked = await host.show_answered()
    await host.settle(asked)
    [reply] = host.replies(asked)
    await host.sees_over(asked, "answered", reply.by, "Yes")


@_promise()
async def a_settled_card_says_that_nobody_answered(host: HostRole) -> None:
    asked = await host.show(DEPLOY)
    ending = Ending(OutcomeKind.EXPIRED, NOON, reason="nobody answered in time")
    await host.settle(asked, ending)
    await host.sees_over(asked, "nobody answered")


@_promise()
async def a_settled_card_takes_no_more_answers(host: HostRole) -> None:
    asked = await host.show_answered()
    await host.settle(asked)
    await host.sees_over(asked, "answered")
    await _try_in_vain(host, asked, [asked.card])


@_promise()
async def settling_twice_says_nothing_twice(host: HostRole) -> None:
    asked = await host.show_answered()
    await host.settle(asked)
    await host.sees_over(asked, "answered")
    said = host.world.sees()
    await host.settle(asked)
    expect(host.world.sees() == said, "it was said once more that a card is over")


@_promise()
async def a_settled_card_says_how_the_delivery_goes_on(host: HostRole) -> None:
    asked = await host.show_answered()
    await host.settle(asked)
    await host.settle(asked, note="The agent had stopped; it was resumed")
    await host.sees_over(asked, "it was resumed")


@_promise(Ability.REMOVE_CARDS)
async def a_card_that_vanished_is_settled_without_an_error(host: HostRole) -> None:
    asked = await host.show_answered()
    await host.world.remove(asked.card)
    await host.settle(asked)
    await host.show_answered()


@_promise()
async def an_id_that_it_never_gave_does_no_harm(host: HostRole) -> None:
    asked = await host.show_answered()
    try:
        await host.settle(replace(asked, message_id="nothing of ours"))
    except ChannelUnavailable as exc:
        expect(str(exc), "it does not say why")
    await host.show_answered()


@_promise(Ability.TELL_APART)
async def two_people_are_told_apart(host: HostRole) -> None:
    world, names = host.world, set()
    cards = [await host.show(DEPLOY), await host.show(COLOUR)]
    for user, asked, label in zip((world.first, world.second), cards, ("Yes", "Blue"), strict=True):
        await world.choose(user, asked.card, label)
        answers = await host.answered(asked)
        [reply] = host.replies(asked)
        expect(answers == (Answer((label,)),), f"{answers} arrived")
        expect(reply.user_id == user, f"{reply.user_id} is not {user}")
        names.add(reply.by)
    expect(len(names) == len(cards), "two people have one name")


@_promise(Ability.GO_DOWN)
async def it_says_when_the_service_is_down_and_works_when_it_is_back(host: HostRole) -> None:
    world, pending = host.world, host.next_question(DEPLOY)
    await world.go_down()
    problem = await host.until(world.channel.problem, "the channel to say what is wrong")
    expect(isinstance(problem, str), "what is wrong is not said in words")
    await _is_refused(host.send(pending), "a card was shown while the service was down")
    await world.come_back()
    await host.until(lambda: world.channel.problem() is None, "the channel to be well again")
    asked = await host.show_again(pending, repeated=True)
    await world.choose(world.first, asked.card, "Yes")
    await host.answered(asked)


@_promise(Ability.GO_DOWN)
async def a_card_that_cannot_be_settled_now_is_settled_later(host: HostRole) -> None:
    world, asked = host.world, await host.show_answered()
    await world.go_down()
    await host.until(world.channel.problem, "the channel to say what is wrong")
    await _is_refused(host.settle(asked), "a card was settled while the service was down")
    await world.come_back()
    await host.until(lambda: world.channel.problem() is None, "the channel to be well again")
    await host.settle(asked)
    await host.sees_over(asked, "answered")


async def _is_refused(call: Awaitable[object], otherwise: str) -> None:
    try:
        await call
    except ChannelUnavailable as exc:
        expect(str(exc), "the channel does not say why")
        return
    raise PromiseBroken(otherwise)


@_promise(opened=False)
async def it_closes_without_having_been_opened(host: HostRole) -> None:
    await host.world.channel.close()
    await host.restart()
    await host.show_answered()


@_promise()
async def closing_twice_does_no_harm(host: HostRole) -> None:
    await host.show_answered()
    await host.world.channel.close()
    await host.world.channel.close()
    await host.restart()
    await host.show_answered()


@_promise()
async def opening_twice_counts_no_answer_twice(host: HostRole) -> None:
    await host.open()
    asked = await host.show_answered()
    await host.show_answered()
    expect(len(host.replies(asked)) == 1, "an answer arrived twice")


@_promise()
async def what_an_agent_writes_calls_nobody_and_links_nowhere(host: HostRole) -> None:
    asked = await host.show(HOSTILE)
    expect(not asked.card.mentions, f"the service made {asked.card.mentions} of the agent's text")
    expect("everyone" in asked.card.text, "the question is not shown whole")


PROMISES = tuple(_promises)
