import GattherdBluetooth
import GattherdLog
import GattherdModel
import GattherdSync

/// Writes the requests of a link's polled streams at their intervals, one after the other.
///
/// The next request follows the answer to the one before, or its time-out; controls are written between them. A device
/// that stays without an answer is found by the silence watch, for which a polled stream has a limit of three rounds.
struct StreamPolls: Sendable {
    private let link: ServedLink
    private let turn: RequestTurn
    private let polls: [(poll: ProfileAssignment.Poll, answers: LatestValue<UInt64>)]

    init(_ link: ServedLink, _ plan: ProfileAssignment, _ served: [ServedStream]) {
        self.link = link
        turn = plan.turn
        polls = plan.polls.compactMap { poll in
            guard served.indices.contains(poll.stream) else { return nil }
            return served[poll.stream].binding.answers.map { (poll, $0) }
        }
    }

    /// Runs until cancelled; returns the fault of a link that cannot be used.
    func run() async -> LinkFault? {
        var due = polls.map { _ in SuspendingClock.now }
        var failed: Set<Int> = []
        while let next = due.indices.min(by: { due[$0] < due[$1] }) {
            let pause = due[next] - .now
            if pause > .zero, (try? await Task.sleep(for: pause, clock: .loop)) == nil { return nil }
            due[next] = .now + polls[next].poll.rule.period
            do throws(LinkFault) {
                try await round(next, &failed)
            } catch {
                return Task.isCancelled ? nil : error
            }
            guard !Task.isCancelled else { return nil }
        }
        return nil
    }

    /// Writes the requests of one stream; a failed write ends the round, and the next round tries again.
    ///
    /// Only the first of several failed rounds is reported.
    ///
    /// - Throws: The fault of a missing or lost bond.
    private func round(_ index: Int, _ failed: inout Set<Int>) async throws(LinkFault) {
        let poll = polls[index].poll
        for request in poll.rule.requests where !Task.isCancelled {
            do throws(BluetoothError) {
                let isAnswered = try await turn.perform { () async throws(BluetoothError) in
                    Task.isCancelled ? true : try await exchange(request, poll, polls[index].answers)
                }
                if !isAnswered { link.log(.debug, "a request is not answered") }
            } catch {
                guard !Task.isCancelled else { return }
                let action = "writing a request to \(poll.control.uuid)"
                if error.kind == .authentication {
                    throw link.context.bonds.fault(error, of: link.peripheral, while: action)
                }
                if failed.insert(index).inserted { report(error, action, poll) }
                return
            }
        }
        failed.remove(index)
    }

    /// Writes a request and waits for a reading of the stream; returns false after the time-out.
    private func exchange(
        _ request: WriteTemplate,
        _ poll: ProfileAssignment.Poll,
        _ answers: LatestValue<UInt64>
    ) async throws(BluetoothError) -> Bool {
        let before = answers.state
        let octets = try request.octets(at: link.context.now())
        try await link.central.write(octets, to: poll.control, withResponse: poll.isAcknowledged)
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await count in answers.watch() where count != before { return true }
                return false
            }
            group.addTask {
                try? await Task.sleep(for: poll.rule.timeout, clock: .loop)
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }

    private func report(_ error: BluetoothError, _ action: String, _ poll: ProfileAssignment.Poll) {
        link.log(.warning, "a stream is not polled", [.init("action", action), .init("error", error.detail)])
        link.context.recorder.record(
            device: link.device.name,
            kind: "stream",
            ["stream": .text(poll.name), "error": .text("\(action): \(error.detail)")]
        )
    }
}

extension ProfileAssignment.Poll {
    /// True to write with response: as the profile states, or else if the characteristic supports it.
    fileprivate var isAcknowledged: Bool {
        rule.isAcknowledged ?? (control.properties.isEmpty || control.properties.contains(.write))
    }
}
