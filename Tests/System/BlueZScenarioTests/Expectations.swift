import BlueZKit
import GattherdProcess
import Glibc
import TestKit
import Testing

extension Gateway {
    /// Stops the notifications and expects that peripherals, history and subscriber agree.
    ///
    /// Fails when 50 polls in a row, 200 ms apart, find no new reading. Polls are counted instead of seconds so that a
    /// stalled machine does not fail the test. The subscriber must have subscribed before the daemon started. Values
    /// may be missing if they were sent in the `tail`, the last microseconds of a link, or in one of the `gaps`, while
    /// a part of the host was down.
    func expectAgreement(
        _ subscriber: Subscriber,
        tail: Int = 1_000_000,
        gaps: [DeliveryAudit.Gap] = [],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await silence()
        var audit = try await audit(of: subscriber)
        var idlePolls = 0
        while !audit.problems(tail: tail, gaps: gaps).isEmpty, idlePolls < 50 {
            try await Task.sleep(for: .milliseconds(200))
            let before = audit.entryCount
            audit = try await self.audit(of: subscriber)
            idlePolls = audit.entryCount == before ? idlePolls + 1 : 0
        }
        let problems = audit.problems(tail: tail, gaps: gaps)
        #expect(problems.isEmpty, "\(problems.count): \(problems.prefix(12))", sourceLocation: sourceLocation)
        #expect(audit.storedCount > 0, sourceLocation: sourceLocation)
    }

    /// Stops the daemon and the stack.
    ///
    /// Expects that the daemon exits with 0 and that no part of the stack has crashed.
    func end(_ daemon: ChildProcess, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0), sourceLocation: sourceLocation)
        try await stack.stop()
    }
}
