"""The integrations that the simulation is judged by: those with one bug each, and the correct ones."""

import sys
import time
from typing import Literal
from unittest import mock

import attrs

from followup_mockserver.simulation import Clinic, simulate
from support.integrations import asynchronous, commits, common, from_threads, outbox_clinics, planted
from support.integrations.asynchronous import Awaiting
from support.integrations.intentions import Intentions
from support.integrations.orm import WebApplication
from support.integrations.reconciling import Reconciling
from support.integrations.stores import Stores
from support.integrations.transactions import WithDjango

REACHES = "Every booking that the clinic believes in is at the service exactly once, at its last time."
CANCELS = "A booking that the clinic cancelled is cancelled at the service, or never got there."
KNOWN = "Nothing is at the service that the clinic does not know."
KEEPS = "What book(), reschedule() and cancel() did when they returned is in bookings()."
PATIENT = "Every booking is at the service for the patient with its phone."
ONCE = "The work of every genuine webhook event is done exactly once."
RETURNS = "Every method of the clinic returns in the end."
STARTS = "The clinic starts, also after a crash, unless a fault prevents it."
GENUINE = "The work of a forged webhook is never done."

SHORT = {
    REACHES: "bookings arrive",
    CANCELS: "cancellations arrive",
    KNOWN: "nothing is unknown",
    KEEPS: "changes are kept",
    PATIENT: "bookings have their patient",
    ONCE: "events are handled once",
    GENUINE: "forgeries are not handled",
    STARTS: "it starts",
    RETURNS: "methods return",
}
"""The promises in few words, for a table."""

EXAMPLES = 100
SEEDS = 30
ENOUGH = 27
"""A bug must be found with at least so many of the seeds, with this number of examples each."""

Kind = Literal["our own", "public threads", "commits", "races"]


@attrs.frozen
class Bug:
    """A planted bug.

    Attributes:
        kind: the part of the catalogue that it belongs to.
        clinic: the integration that has it. The first line of its docstring says what is wrong.
        promises: those that it can break.
        thread: the public thread that describes it, such as ``owner/repository#1``; empty if there is none.
        seed: one with which it is found quickly.
        is_slow: whether a shorter history takes more than about a second of CPU to find, while others show as much.
        steps: the most steps of a history that is as short as it can be, or nearly so.
    """

    kind: Kind
    clinic: type[Clinic]
    promises: tuple[str, ...]
    thread: str = ""
    seed: int = 0
    is_slow: bool = False
    steps: int = 12

    @property
    def name(self) -> str:
        """Name of the integration, which no other bug has."""
        return self.clinic.__name__

    def found(self, seed: int) -> tuple[bool, float]:
        """Return whether a simulation finds it, by a promise that it can break, and the seconds of CPU that this takes.

        The search for a shorter history, which comes next, is omitted.
        """
        began = time.process_time()
        with mock.patch.object(sys.modules[simulate.__module__], "_MOST_SHRINKS", 0):
            try:
                simulate(self.clinic, examples=EXAMPLES, seed=seed)
            except AssertionError as failure:
                return promise_in(failure) in self.promises, time.process_time() - began
        return False, time.process_time() - began


def promise_in(failure: AssertionError) -> str:
    """Return the promise that the message of a failure names."""
    [promise] = [line[9:] for line in str(failure).splitlines() if line.startswith("Promise: ")]
    return promise


BUGS: tuple[Bug, ...] = (
    Bug("our own", planted.SendsAfterCommit, (REACHES, CANCELS)),
    Bug("our own", planted.SendsBeforeCommit, (KNOWN, REACHES, CANCELS)),
    Bug("our own", planted.QueuesInMemory, (REACHES, CANCELS)),
    Bug("our own", planted.MarksBeforeSending, (REACHES, CANCELS)),
    Bug("our own", planted.GivesUp, (REACHES, CANCELS), is_slow=True),
    Bug("our own", planted.Overtakes, (REACHES, CANCELS), is_slow=True),
    Bug("our own", planted.KeysOfPhones, (REACHES, CANCELS)),
    Bug("our own", planted.ForgetsToCancel, (CANCELS,)),
    Bug("our own", planted.ReadsOnePage, (REACHES, CANCELS), is_slow=True, steps=14),
    Bug("our own", planted.IgnoresResults, (REACHES, CANCELS, ONCE), is_slow=True),
    Bug("our own", planted.MakesNewIds, (REACHES, CANCELS), is_slow=True),
    Bug("our own", planted.DeduplicatesFirst, (ONCE,)),
    Bug("our own", planted.DeduplicatesLast, (ONCE,)),
    Bug("our own", planted.RemembersInMemory, (ONCE,), is_slow=True),
    Bug("our own", planted.RespondsFirst, (ONCE,), is_slow=True),
    Bug("our own", planted.BelievesOldEvents, (KEEPS, REACHES), is_slow=True),
    Bug("our own", planted.AcceptsOldRequests, (ONCE, GENUINE)),
    Bug("our own", common.TrustsWithoutSignature, (GENUINE,)),
    Bug("our own", common.TrustsAnEmptySignature, (GENUINE,)),
    Bug("our own", common.ComparesTheBeginning, (GENUINE,)),
    Bug("our own", common.TrustsWithoutTimestamp, (GENUINE,), is_slow=True),
    Bug("our own", common.RemembersTwenty, (ONCE,), is_slow=True, steps=24),
    Bug("our own", common.ComparesSeconds, (ONCE,)),
    Bug("our own", common.FindsByName, (PATIENT,)),
    Bug("our own", common.TakesLocalTimeForUtc, (REACHES,)),
    Bug("our own", common.StoresLocalTime, (REACHES,)),
    Bug("public threads", from_threads.VerifiesWrittenAgain, (ONCE,), "octokit/webhooks.js#71"),
    Bug("public threads", from_threads.BindsLate, (REACHES, CANCELS), "attendee-labs/attendee#503"),
    Bug("public threads", from_threads.SkipsWhatItDoesNotKnow, (ONCE,), "laravel/cashier-stripe#1243", is_slow=True),
    Bug("public threads", from_threads.ComparesContents, (ONCE,), "muxinc/mux-node-sdk#83"),
    Bug("public threads", from_threads.ForgetsAfterAMinute, (ONCE,), "2600hz/kazoo#423"),
    Bug(
        "public threads",
        from_threads.IgnoresLateEvents,
        (ONCE,),
        "safe-global/safe-transaction-service#823",
        is_slow=True,
    ),
    Bug("public threads", from_threads.TriesThreeTimes, (REACHES, CANCELS), "FriendsOfShopware/shopmon#814"),
    Bug("public threads", from_threads.FindsByPhone, (REACHES, CANCELS), "hmislk/hmis#17786", is_slow=True),
    Bug("public threads", from_threads.MovesByCancelling, (REACHES,), "calcom/cal.diy#7851"),
    Bug("commits", commits.CommitsTheBookingFirst, (REACHES, CANCELS), is_slow=True),
    Bug("commits", commits.CommitsTheEventFirst, (KNOWN, REACHES, CANCELS), is_slow=True),
    Bug("commits", commits.RecordsOnCommit, (REACHES, CANCELS), is_slow=True),
    Bug("commits", commits.MigratesInSteps, (STARTS,)),
    Bug("commits", commits.MarksBeforeItsWork, (ONCE,), is_slow=True),
    Bug("commits", commits.MarksAfterItsWork, (ONCE,), is_slow=True),
    Bug("commits", outbox_clinics.InTwoTransactions, (ONCE,), is_slow=True),
    Bug("commits", outbox_clinics.OverAnotherConnection, (ONCE,), is_slow=True),
    Bug("races", asynchronous.DrainsTwice, (REACHES, CANCELS), is_slow=True),
    Bug("races", asynchronous.SendsAtTheSameTime, (REACHES, CANCELS), is_slow=True),
    Bug("races", asynchronous.ForgetsThatItWasCancelled, (REACHES, CANCELS), is_slow=True),
    Bug("races", asynchronous.FiresAndForgets, (REACHES, CANCELS), is_slow=True),
    Bug("races", asynchronous.HandlesAfterLooking, (ONCE,)),
    Bug("races", asynchronous.LosesUpdates, (KEEPS, REACHES, CANCELS), is_slow=True),
    Bug("races", asynchronous.WaitsForItself, (RETURNS,)),
)
"""Every planted bug. Each differs from a correct integration where the bug is."""

CORRECT = (Stores, Intentions, Reconciling, WebApplication, WithDjango, Awaiting)
"""Correct integrations of different architecture."""
