import GattherdMachines
import GattherdModel
import Testing

/// One history of a link, where it ends, and what its last event asked for.
struct LinkRow: Sendable, CustomTestStringConvertible {
    let rule: String
    let events: [LinkMachine.Event]
    let state: LinkState
    let effects: [LinkMachine.Effect]

    init(_ rule: String, _ events: [LinkMachine.Event], _ state: LinkState, _ effects: [LinkMachine.Effect]) {
        self.rule = rule
        self.events = events
        self.state = state
        self.effects = effects
    }

    var testDescription: String { rule }
}

private let radio = LinkFault(.connectFailed, "le-connection-abort-by-local")
private let mismatch = LinkFault(.profileMismatch, "no profile fits", isPermanent: true)
/// The events that bring a fresh link to ready: tickets count from 1, one for each move.
private let ready: [LinkMachine.Event] = [
    .seen(isConnected: false), .granted, .connected(ticket: 1), .discovered(ticket: 2), .prepared(ticket: 2),
]

/// As many changes of the GATT table as a link bears.
private let changes: [LinkMachine.Event] = (3...7).flatMap { ticket -> [LinkMachine.Event] in
    [.tableChanged, .discovered(ticket: ticket), .prepared(ticket: ticket)]
}

private func changed(
    _ from: LinkState,
    _ to: LinkState,
    _ reason: LinkReason? = nil,
    _ detail: String? = nil,
    attempt: Int = 0,
    retryAfter: Duration? = nil
) -> LinkMachine.Effect {
    .changed(
        LinkChange(from: from, to: to, reason: reason, detail: detail, attempt: attempt, retryAfter: retryAfter)
    )
}

/// No jitter, so that a row can say how long the pause is.
private let policy = LinkMachine.Policy(backoff: Backoff(minimum: .seconds(1), maximum: .seconds(1)))

@Suite struct LinkMachineTests {
    static let rows = [
        LinkRow("a device that is seen asks for its turn", [.seen(isConnected: false)], .waiting, [.queue]),
        LinkRow("it asks once", [.seen(isConnected: false), .seen(isConnected: false)], .waiting, []),
        LinkRow(
            "its turn makes it connect",
            [.seen(isConnected: false), .granted],
            .connecting,
            [changed(.waiting, .connecting), .connect(ticket: 1), .arm(after: .seconds(60), ticket: 1)]
        ),
        LinkRow("a turn that nobody asked for is ignored", [.granted], .waiting, []),
        LinkRow("a second turn changes nothing", [.seen(isConnected: false), .granted, .granted], .connecting, []),
        LinkRow(
            "connected gives the turn back and opens a session",
            [.seen(isConnected: false), .granted, .connected(ticket: 1)],
            .discovering,
            [
                .unqueue, changed(.connecting, .discovering), .openSession(ticket: 2),
                .arm(after: .seconds(180), ticket: 2),
            ]
        ),
        LinkRow("prepared is ready", ready, .ready, [changed(.preparing, .ready)]),
        LinkRow(
            "a link that bluetoothd holds already is adopted without a turn",
            [.seen(isConnected: true)],
            .discovering,
            [changed(.waiting, .discovering), .openSession(ticket: 1), .arm(after: .seconds(180), ticket: 1)]
        ),
        LinkRow(
            "a connect that fails for the first time is tried again soon, and tells why",
            [.seen(isConnected: false), .granted, .failed(radio, ticket: 1)],
            .backingOff,
            [
                .unqueue,
                changed(
                    .connecting,
                    .backingOff,
                    .connectFailed,
                    radio.detail,
                    attempt: 1,
                    retryAfter: .milliseconds(100)
                ),
                .arm(after: .milliseconds(100), ticket: 2),
            ]
        ),
        LinkRow(
            "the answer to an attempt given up is not the next attempt's",
            [.seen(isConnected: false), .granted, .failed(radio, ticket: 1), .connected(ticket: 1)],
            .backingOff,
            []
        ),
        LinkRow(
            "after the pause it asks for its turn again",
            [.seen(isConnected: false), .granted, .failed(radio, ticket: 1), .due(ticket: 2)],
            .backingOff,
            [.queue]
        ),
        LinkRow(
            "a drop ends the session and backs off without a disconnect",
            ready + [.lost(.remote, detail: "dropped")],
            .backingOff,
            [
                .closeSession,
                changed(.ready, .backingOff, .remote, "dropped", attempt: 1, retryAfter: .seconds(1)),
                .arm(after: .seconds(1), ticket: 3),
            ]
        ),
        LinkRow(
            "a session that fails ends the link before the pause begins",
            [.seen(isConnected: true), .failed(LinkFault(.gattError, "CCC refused"), ticket: 1)],
            .backingOff,
            [
                .closeSession,
                changed(.discovering, .backingOff, .gattError, "CCC refused", attempt: 1, retryAfter: .seconds(1)),
                .disconnect(ticket: 2), .arm(after: .seconds(30), ticket: 2),
            ]
        ),
        LinkRow(
            "the pause begins when that link has ended",
            [
                .seen(isConnected: true), .failed(LinkFault(.gattError, "CCC refused"), ticket: 1),
                .disconnected(ticket: 2),
            ],
            .backingOff,
            [.arm(after: .seconds(1), ticket: 2)]
        ),
        LinkRow(
            "what retrying cannot mend is tried again slowly",
            [.seen(isConnected: true), .failed(mismatch, ticket: 1), .disconnected(ticket: 2)],
            .failed,
            [.arm(after: .seconds(300), ticket: 2)]
        ),
        LinkRow("a failed link is not moved by being seen", failedRow + [.seen(isConnected: true)], .failed, []),
        LinkRow(
            "hold ends a ready link",
            ready + [.hold],
            .disconnecting,
            [
                .closeSession, changed(.ready, .disconnecting, .requested), .disconnect(ticket: 3),
                .arm(after: .seconds(30), ticket: 3),
            ]
        ),
        LinkRow(
            "and the end of that link is held",
            ready + [.hold, .disconnected(ticket: 3)],
            .held,
            [changed(.disconnecting, .held, .requested)]
        ),
        LinkRow(
            "held never reconnects by itself",
            ready + [.hold, .disconnected(ticket: 3), .seen(isConnected: false), .seen(isConnected: true)],
            .held,
            []
        ),
        LinkRow(
            "release asks for a turn at once",
            ready + [.hold, .disconnected(ticket: 3), .release],
            .waiting,
            [changed(.held, .waiting), .queue]
        ),
        LinkRow(
            "bluetoothd gone ends everything until it is back",
            ready + [.gone(.daemonLost, detail: "left the bus")],
            .disconnected,
            [.closeSession, changed(.ready, .disconnected, .daemonLost, "left the bus")]
        ),
        LinkRow(
            "and back means connect at once",
            ready + [.gone(.daemonLost, detail: "left the bus"), .seen(isConnected: false)],
            .disconnected,
            [.queue]
        ),
        LinkRow(
            "what has failed is tried once more when bluetoothd is back",
            failedRow + [.gone(.daemonLost, detail: "left the bus"), .seen(isConnected: false)],
            .disconnected,
            [.queue]
        ),
        LinkRow(
            "forgotten while backing off keeps the pause",
            [
                .seen(isConnected: false), .granted, .failed(radio, ticket: 1), .gone(.vanished, detail: "removed"),
                .seen(isConnected: false),
            ],
            .backingOff,
            []
        ),
        LinkRow(
            "another GATT table replaces the session on the same link",
            ready + [.tableChanged],
            .discovering,
            [
                changed(.ready, .discovering, .gattError), .replaceSession(ticket: 3),
                .arm(after: .seconds(180), ticket: 3),
            ]
        ),
        LinkRow(
            "a table that changes twice costs nothing more",
            ready + [.tableChanged, .discovered(ticket: 3), .prepared(ticket: 3), .tableChanged],
            .discovering,
            [
                changed(.ready, .discovering, .gattError), .replaceSession(ticket: 4),
                .arm(after: .seconds(180), ticket: 4),
            ]
        ),
        LinkRow(
            "a table that keeps changing costs the link",
            ready + changes + [.tableChanged],
            .backingOff,
            [
                .closeSession,
                changed(
                    .ready,
                    .backingOff,
                    .gattError,
                    "its services keep changing",
                    attempt: 1,
                    retryAfter: .seconds(1)
                ),
                .disconnect(ticket: 8), .arm(after: .seconds(30), ticket: 8),
            ]
        ),
        LinkRow(
            "a session that ends again and again costs the link",
            ready + [.sessionStale, .discovered(ticket: 3), .prepared(ticket: 3), .sessionStale],
            .backingOff,
            [
                .closeSession,
                changed(
                    .ready,
                    .backingOff,
                    .gattError,
                    "its services or subscriptions ended again",
                    attempt: 1,
                    retryAfter: .seconds(1)
                ),
                .disconnect(ticket: 4), .arm(after: .seconds(30), ticket: 4),
            ]
        ),
        LinkRow(
            "an attempt that BlueZ is at already is ended before the next",
            [.seen(isConnected: false), .granted, .failed(LinkFault(.busy, "InProgress"), ticket: 1)],
            .backingOff,
            [
                .unqueue,
                changed(.connecting, .backingOff, .busy, "InProgress", attempt: 1, retryAfter: .seconds(1)),
                .disconnect(ticket: 2), .arm(after: .seconds(30), ticket: 2),
            ]
        ),
        LinkRow(
            "a link that was there for a moment does not end the attempt: its answer will",
            [.seen(isConnected: false), .granted, .lost(.remote, detail: "dropped")],
            .connecting,
            []
        ),
        LinkRow(
            "nor does BlueZ's forgetting of the peripheral",
            [.seen(isConnected: false), .granted, .gone(.vanished, detail: "removed")],
            .connecting,
            []
        ),
        LinkRow(
            "after whose failure it waits for being seen again",
            [
                .seen(isConnected: false), .granted, .gone(.vanished, detail: "removed"), .failed(radio, ticket: 1),
                .due(ticket: 2),
            ],
            .waiting,
            [changed(.backingOff, .waiting, .connectFailed, attempt: 1)]
        ),
        LinkRow(
            "an attempt that nobody answers is given up",
            [.seen(isConnected: false), .granted, .due(ticket: 1)],
            .backingOff,
            [
                .unqueue,
                changed(
                    .connecting,
                    .backingOff,
                    .timedOut,
                    "no answer while connecting",
                    attempt: 1,
                    retryAfter: .seconds(1)
                ),
                .disconnect(ticket: 2), .arm(after: .seconds(30), ticket: 2),
            ]
        ),
        LinkRow(
            "an end that nobody answers counts as the end",
            ready + [.hold, .due(ticket: 3)],
            .held,
            [changed(.disconnecting, .held, .requested)]
        ),
        LinkRow(
            "released while it is being disconnected, it connects when that is over, not before",
            ready + [.hold, .release],
            .waiting,
            [changed(.disconnecting, .waiting)]
        ),
        LinkRow(
            "and then it asks for its turn",
            ready + [.hold, .release, .disconnected(ticket: 3)],
            .waiting,
            [.queue]
        ),
        LinkRow(
            "a device whose session failed is not taken over before its pause is over",
            [
                .seen(isConnected: true), .failed(LinkFault(.gattError, "CCC refused"), ticket: 1),
                .disconnected(ticket: 2), .seen(isConnected: true),
            ],
            .backingOff,
            []
        ),
        LinkRow(
            "a pause that waits for the end of a link begins when BlueZ forgets it",
            [
                .seen(isConnected: true), .failed(LinkFault(.gattError, "CCC refused"), ticket: 1),
                .gone(.vanished, detail: "removed"),
            ],
            .backingOff,
            [.arm(after: .seconds(1), ticket: 2)]
        ),
        LinkRow(
            "a link without services is waited for",
            [.seen(isConnected: false), .linkFound],
            .waiting,
            [.unqueue, .arm(after: .milliseconds(2500), ticket: 1)]
        ),
        LinkRow("it is waited for once", [.linkFound, .linkFound], .waiting, []),
        LinkRow(
            "when it drops a turn is asked for, and no failure is counted",
            [.linkFound, .seen(isConnected: false)],
            .waiting,
            [.queue]
        ),
        LinkRow(
            "when services come it is adopted",
            [.linkFound, .seen(isConnected: true)],
            .discovering,
            [changed(.waiting, .discovering), .openSession(ticket: 2), .arm(after: .seconds(180), ticket: 2)]
        ),
        LinkRow("when it is still there later Connect uses it", [.linkFound, .due(ticket: 1)], .waiting, [.queue]),
        LinkRow("and keeps its turn", [.linkFound, .due(ticket: 1), .linkFound], .waiting, []),
        LinkRow(
            "a new bluetoothd may have another such link",
            [.linkFound, .due(ticket: 1), .gone(.daemonLost, detail: "left"), .linkFound],
            .disconnected,
            [.arm(after: .milliseconds(2500), ticket: 3)]
        ),
        LinkRow(
            "what failed before bluetoothd ended does not count",
            [
                .seen(isConnected: false), .granted, .failed(radio, ticket: 1), .gone(.daemonLost, detail: "left"),
                .seen(isConnected: false), .granted, .failed(radio, ticket: 4),
            ],
            .backingOff,
            [
                .unqueue,
                changed(
                    .connecting,
                    .backingOff,
                    .connectFailed,
                    radio.detail,
                    attempt: 1,
                    retryAfter: .milliseconds(100)
                ),
                .arm(after: .milliseconds(100), ticket: 5),
            ]
        ),
        LinkRow(
            "a ready link that cannot be probed is not online",
            ready + [.stalled(detail: "bluetoothd does not answer", ticket: 2)],
            .ready,
            [changed(.ready, .ready, .silent, "bluetoothd does not answer")]
        ),
        LinkRow(
            "and is again when bluetoothd answers",
            ready + [.stalled(detail: "bluetoothd does not answer", ticket: 2), .resumed(ticket: 2)],
            .ready,
            [changed(.ready, .ready)]
        ),
        LinkRow(
            "what an earlier session says of silence is ignored",
            ready + [.sessionStale, .stalled(detail: "bluetoothd does not answer", ticket: 2)],
            .discovering,
            []
        ),
        LinkRow(
            "a link that makes room is ended, and its pause is no failure",
            ready + [.yield(.seconds(30), detail: "full")],
            .backingOff,
            [
                .closeSession, changed(.ready, .backingOff, .rotated, "full", retryAfter: .seconds(30)),
                .disconnect(ticket: 3), .arm(after: .seconds(30), ticket: 3),
            ]
        ),
    ]

    static let failedRow: [LinkMachine.Event] = [
        .seen(isConnected: true), .failed(mismatch, ticket: 1), .disconnected(ticket: 2),
    ]

    @Test("Transitions", arguments: rows)
    func transition(row: LinkRow) throws {
        var machine = LinkMachine(policy: policy)
        var dice = SplitMix64(seed: 1)
        let effects = row.events.map { machine.handle($0, now: .zero, using: &dice) }
        #expect(machine.state == row.state)
        #expect(try #require(effects.last) == row.effects)
    }

    @Test("A flapping link keeps backing off; one that was ready for long starts afresh")
    func stability() {
        #expect(attempts(readyFor: .seconds(29)) == 3)
        #expect(attempts(readyFor: .seconds(30)) == 1)
    }

    /// Drops three links after each has been ready for `duration`, and counts the failures that are remembered.
    private func attempts(readyFor duration: Duration) -> Int {
        var machine = LinkMachine(policy: policy)
        var dice = SplitMix64(seed: 1)
        var now = Duration.zero
        var ticket = 0
        func step(_ event: LinkMachine.Event) {
            for effect in machine.handle(event, now: now, using: &dice) {
                switch effect {
                case .connect(let next), .openSession(let next), .arm(_, let next): ticket = next
                default: break
                }
            }
        }
        step(.seen(isConnected: false))
        for _ in 1...3 {
            step(.granted)
            step(.connected(ticket: ticket))
            step(.discovered(ticket: ticket))
            step(.prepared(ticket: ticket))
            now += duration
            step(.lost(.remote, detail: ""))
            step(.due(ticket: ticket))
        }
        return machine.attempt
    }

    @Test("A device that was held before the start stays held")
    func heldOverRestart() {
        var machine = LinkMachine(policy: policy, isHeld: true)
        var dice = SplitMix64(seed: 1)
        #expect(machine.handle(.seen(isConnected: false), now: .zero, using: &dice).isEmpty)
        #expect(machine.state == .held)
    }
}
