import GattherdMachines
import GattherdModel
import Testing

/// One history of a link: its events, the final state, and the effects of the last event.
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
/// The events that bring a fresh link to ready: tickets count from 1, one for each transition.
private let ready: [LinkMachine.Event] = [
    .seen(isConnected: false), .granted, .connected(ticket: 1), .discovered(ticket: 2), .prepared(ticket: 2),
]

/// The maximum number of tolerated changes of the GATT table.
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

/// A policy without jitter, so that a row can state the pause.
private let policy = LinkMachine.Policy(backoff: Backoff(minimum: .seconds(1), maximum: .seconds(1)))

@Suite struct LinkMachineTests {
    static let rows = [
        LinkRow("a seen device requests a turn", [.seen(isConnected: false)], .waiting, [.queue]),
        LinkRow("a turn is requested once", [.seen(isConnected: false), .seen(isConnected: false)], .waiting, []),
        LinkRow(
            "a granted turn starts the attempt",
            [.seen(isConnected: false), .granted],
            .connecting,
            [changed(.waiting, .connecting), .connect(ticket: 1), .arm(after: .seconds(60), ticket: 1)]
        ),
        LinkRow("a turn without a request is ignored", [.granted], .waiting, []),
        LinkRow("a second turn changes nothing", [.seen(isConnected: false), .granted, .granted], .connecting, []),
        LinkRow(
            "an established link returns the turn and opens a session",
            [.seen(isConnected: false), .granted, .connected(ticket: 1)],
            .discovering,
            [
                .unqueue, changed(.connecting, .discovering), .openSession(ticket: 2),
                .arm(after: .seconds(180), ticket: 2),
            ]
        ),
        LinkRow("a prepared session makes the link ready", ready, .ready, [changed(.preparing, .ready)]),
        LinkRow(
            "an existing link is used without a turn",
            [.seen(isConnected: true)],
            .discovering,
            [changed(.waiting, .discovering), .openSession(ticket: 1), .arm(after: .seconds(180), ticket: 1)]
        ),
        LinkRow(
            "a first failed attempt is retried soon and reports its reason",
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
            "the answer to an abandoned attempt does not count for the next",
            [.seen(isConnected: false), .granted, .failed(radio, ticket: 1), .connected(ticket: 1)],
            .backingOff,
            []
        ),
        LinkRow(
            "a turn is requested again after the pause",
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
            "a failed session ends the link before the pause begins",
            [.seen(isConnected: true), .failed(LinkFault(.gattError, "CCC refused"), ticket: 1)],
            .backingOff,
            [
                .closeSession,
                changed(.discovering, .backingOff, .gattError, "CCC refused", attempt: 1, retryAfter: .seconds(1)),
                .disconnect(ticket: 2), .arm(after: .seconds(30), ticket: 2),
            ]
        ),
        LinkRow(
            "the pause after a failed session begins when the link has ended",
            [
                .seen(isConnected: true), .failed(LinkFault(.gattError, "CCC refused"), ticket: 1),
                .disconnected(ticket: 2),
            ],
            .backingOff,
            [.arm(after: .seconds(1), ticket: 2)]
        ),
        LinkRow(
            "a permanent failure is retried slowly",
            [.seen(isConnected: true), .failed(mismatch, ticket: 1), .disconnected(ticket: 2)],
            .failed,
            [.arm(after: .seconds(300), ticket: 2)]
        ),
        LinkRow("a sighting does not change a failed link", failedRow + [.seen(isConnected: true)], .failed, []),
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
            "a held link is held after its end",
            ready + [.hold, .disconnected(ticket: 3)],
            .held,
            [changed(.disconnecting, .held, .requested)]
        ),
        LinkRow(
            "a held link never reconnects by itself",
            ready + [.hold, .disconnected(ticket: 3), .seen(isConnected: false), .seen(isConnected: true)],
            .held,
            []
        ),
        LinkRow(
            "a release requests a turn at once",
            ready + [.hold, .disconnected(ticket: 3), .release],
            .waiting,
            [changed(.held, .waiting), .queue]
        ),
        LinkRow(
            "a link that another gateway takes over is ended",
            ready + [.withdrawn(detail: "east's")],
            .disconnecting,
            [
                .closeSession, changed(.ready, .disconnecting, .ownedElsewhere, "east's"), .disconnect(ticket: 3),
                .arm(after: .seconds(30), ticket: 3),
            ]
        ),
        LinkRow(
            "a withdrawn device is not connected when it is seen",
            ready + [.withdrawn(detail: "east's"), .disconnected(ticket: 3), .seen(isConnected: true)],
            .disconnected,
            []
        ),
        LinkRow(
            "an admitted device requests a turn at once",
            ready + [.withdrawn(detail: "east's"), .disconnected(ticket: 3), .admitted],
            .waiting,
            [changed(.disconnected, .waiting), .queue]
        ),
        LinkRow(
            "a device that is admitted while its link ends waits for the end",
            ready + [.withdrawn(detail: "east's"), .admitted, .disconnected(ticket: 3)],
            .waiting,
            [changed(.disconnecting, .waiting), .queue]
        ),
        LinkRow(
            "the loss of bluetoothd does not change why a withdrawn device is not connected",
            ready + [
                .withdrawn(detail: "east's"), .disconnected(ticket: 3), .gone(.daemonLost, detail: "bluetoothd went"),
            ],
            .disconnected,
            []
        ),
        LinkRow(
            "a pause of a withdrawn device ends without a turn",
            [
                .seen(isConnected: false), .granted, .failed(radio, ticket: 1), .withdrawn(detail: "east's"),
                .due(ticket: 2),
            ],
            .disconnected,
            []
        ),
        LinkRow(
            "a hold outlives a withdrawal",
            ready + [.withdrawn(detail: "east's"), .hold, .disconnected(ticket: 3)],
            .held,
            [changed(.disconnecting, .held, .requested)]
        ),
        LinkRow(
            "a released device stays withdrawn",
            [.hold, .withdrawn(detail: "east's"), .release, .seen(isConnected: false)],
            .disconnected,
            []
        ),
        LinkRow(
            "the loss of bluetoothd ends all activity until it returns",
            ready + [.gone(.daemonLost, detail: "left the bus")],
            .disconnected,
            [.closeSession, changed(.ready, .disconnected, .daemonLost, "left the bus")]
        ),
        LinkRow(
            "the return of bluetoothd connects at once",
            ready + [.gone(.daemonLost, detail: "left the bus"), .seen(isConnected: false)],
            .disconnected,
            [.queue]
        ),
        LinkRow(
            "a failed link is retried when bluetoothd returns",
            failedRow + [.gone(.daemonLost, detail: "left the bus"), .seen(isConnected: false)],
            .disconnected,
            [.queue]
        ),
        LinkRow(
            "the removal of the object keeps the pause",
            [
                .seen(isConnected: false), .granted, .failed(radio, ticket: 1), .gone(.vanished, detail: "removed"),
                .seen(isConnected: false),
            ],
            .backingOff,
            []
        ),
        LinkRow(
            "a changed GATT table replaces the session on the same link",
            ready + [.tableChanged],
            .discovering,
            [
                changed(.ready, .discovering, .gattError), .replaceSession(ticket: 3),
                .arm(after: .seconds(180), ticket: 3),
            ]
        ),
        LinkRow(
            "two changes of the table do not cost the link",
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
            "a session that keeps ending costs the link",
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
            "an attempt already in progress in BlueZ is ended before the next",
            [.seen(isConnected: false), .granted, .failed(LinkFault(.busy, "InProgress"), ticket: 1)],
            .backingOff,
            [
                .unqueue,
                changed(.connecting, .backingOff, .busy, "InProgress", attempt: 1, retryAfter: .seconds(1)),
                .disconnect(ticket: 2), .arm(after: .seconds(30), ticket: 2),
            ]
        ),
        LinkRow(
            "a momentary link does not end the attempt, its answer does",
            [.seen(isConnected: false), .granted, .lost(.remote, detail: "dropped")],
            .connecting,
            []
        ),
        LinkRow(
            "the removal of the object does not end the attempt",
            [.seen(isConnected: false), .granted, .gone(.vanished, detail: "removed")],
            .connecting,
            []
        ),
        LinkRow(
            "a failed attempt without an object waits for a sighting",
            [
                .seen(isConnected: false), .granted, .gone(.vanished, detail: "removed"), .failed(radio, ticket: 1),
                .due(ticket: 2),
            ],
            .waiting,
            [changed(.backingOff, .waiting, .connectFailed, attempt: 1)]
        ),
        LinkRow(
            "an unanswered attempt is abandoned",
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
            "an unanswered disconnect counts as the end",
            ready + [.hold, .due(ticket: 3)],
            .held,
            [changed(.disconnecting, .held, .requested)]
        ),
        LinkRow(
            "a release during a disconnect connects after its end, not before",
            ready + [.hold, .release],
            .waiting,
            [changed(.disconnecting, .waiting)]
        ),
        LinkRow(
            "a turn is requested after that disconnect",
            ready + [.hold, .release, .disconnected(ticket: 3)],
            .waiting,
            [.queue]
        ),
        LinkRow(
            "an existing link is not used during the pause after a failed session",
            [
                .seen(isConnected: true), .failed(LinkFault(.gattError, "CCC refused"), ticket: 1),
                .disconnected(ticket: 2), .seen(isConnected: true),
            ],
            .backingOff,
            []
        ),
        LinkRow(
            "a pause that waits for the end of a link begins when BlueZ removes the object",
            [
                .seen(isConnected: true), .failed(LinkFault(.gattError, "CCC refused"), ticket: 1),
                .gone(.vanished, detail: "removed"),
            ],
            .backingOff,
            [.arm(after: .seconds(1), ticket: 2)]
        ),
        LinkRow(
            "a link without services starts a wait",
            [.seen(isConnected: false), .linkFound],
            .waiting,
            [.unqueue, .arm(after: .milliseconds(2500), ticket: 1)]
        ),
        LinkRow("the wait for services starts once", [.linkFound, .linkFound], .waiting, []),
        LinkRow(
            "a link dropped during the wait requests a turn and counts no failure",
            [.linkFound, .seen(isConnected: false)],
            .waiting,
            [.queue]
        ),
        LinkRow(
            "a link whose services appear during the wait is used",
            [.linkFound, .seen(isConnected: true)],
            .discovering,
            [changed(.waiting, .discovering), .openSession(ticket: 2), .arm(after: .seconds(180), ticket: 2)]
        ),
        LinkRow("a link that outlasts the wait is used by Connect", [.linkFound, .due(ticket: 1)], .waiting, [.queue]),
        LinkRow(
            "a link that outlasts the wait keeps its turn",
            [.linkFound, .due(ticket: 1), .linkFound],
            .waiting,
            []
        ),
        LinkRow(
            "a new bluetoothd may show another link without services",
            [.linkFound, .due(ticket: 1), .gone(.daemonLost, detail: "left"), .linkFound],
            .disconnected,
            [.arm(after: .milliseconds(2500), ticket: 3)]
        ),
        LinkRow(
            "failures before the end of bluetoothd do not count",
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
            "a stalled link is online again when bluetoothd answers",
            ready + [.stalled(detail: "bluetoothd does not answer", ticket: 2), .resumed(ticket: 2)],
            .ready,
            [changed(.ready, .ready)]
        ),
        LinkRow(
            "a stall of an earlier session is ignored",
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

    @Test(arguments: rows)
    func `each history ends in the expected state with the expected effects`(row: LinkRow) throws {
        var machine = LinkMachine(policy: policy)
        var dice = SplitMix64(seed: 1)
        let effects = row.events.map { machine.handle($0, at: .zero, using: &dice) }
        #expect(machine.state == row.state)
        #expect(try #require(effects.last) == row.effects)
    }

    @Test func `a flapping link keeps backing off, and a long ready time resets the pauses`() {
        #expect(attempts(readyFor: .seconds(29)) == 3)
        #expect(attempts(readyFor: .seconds(30)) == 1)
    }

    /// Drops three links, each ready for `duration`, and returns the number of remembered failures.
    private func attempts(readyFor duration: Duration) -> Int {
        var machine = LinkMachine(policy: policy)
        var dice = SplitMix64(seed: 1)
        var now = Duration.zero
        var ticket = 0
        func step(_ event: LinkMachine.Event) {
            for effect in machine.handle(event, at: now, using: &dice) {
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

    @Test func `a device that needs admission is not connected before`() {
        var policy = policy
        policy.needsAdmission = true
        var machine = LinkMachine(policy: policy)
        var dice = SplitMix64(seed: 1)
        #expect(machine.handle(.seen(isConnected: false), at: .zero, using: &dice).isEmpty)
        #expect(machine.handle(.admitted, at: .zero, using: &dice) == [.queue])
    }

    @Test func `a device that was held before the start stays held`() {
        var machine = LinkMachine(policy: policy, isHeld: true)
        var dice = SplitMix64(seed: 1)
        #expect(machine.handle(.seen(isConnected: false), at: .zero, using: &dice).isEmpty)
        #expect(machine.state == .held)
    }
}
