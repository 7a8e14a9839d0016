import BlueZKit
import GattherdProcess
import Glibc
import TestKit
import Testing

extension Gateway {
    /// Stops the notifications and expects that peripherals, history and subscriber agree.
    ///
    /// The subscriber must have subscribed before the daemon started. Values may be missing if they were sent in the
    /// `tail`, the last microseconds of a link, or in one of the `gaps`, while a part of the host was down. After the
    /// last commit before one of the `crashes` they may be missing too.
    func expectAgreement(
        _ subscriber: Subscriber,
        tail: Int = 1_000_000,
        gaps: [DeliveryAudit.Gap] = [],
        crashes: [CrashState] = [],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await silence()
        let ready = try await readyTimes()
        func disagreements(_ audit: DeliveryAudit) -> [DeliveryAudit.Problem] {
            let outages = crashes.isEmpty ? [:] : audit.outages(crashes, ready: ready)
            return audit.problems(tail: tail, gaps: gaps, of: outages)
        }
        let audit = try await audit(of: subscriber) { disagreements($0).isEmpty }
        let problems = disagreements(audit)
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
