import BlueZKit
import GattherdProcess
import Glibc
import TestKit
import Testing

extension Gateway {
    /// Ends the sending, and expects that peripherals, history and subscriber agree before nothing comes any more.
    ///
    /// That nothing comes is seen by looking, fifty times in ten seconds: while the machine stands still nobody looks.
    /// The subscriber must have been there from the start. Missing may be what was sent in the `tail`, so many
    /// microseconds before a link's end, or in one of the `gaps`, when a part of the host was down.
    func expectAgreement(
        _ subscriber: Subscriber,
        tail: Int = 1_000_000,
        gaps: [Account.Gap] = [],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await silence()
        var account = try await account(of: subscriber)
        var looksInVain = 0
        while !account.problems(tail: tail, gaps: gaps).isEmpty, looksInVain < 50 {
            try await Task.sleep(for: .milliseconds(200))
            let before = account.takenCount
            account = try await self.account(of: subscriber)
            looksInVain = account.takenCount == before ? looksInVain + 1 : 0
        }
        let problems = account.problems(tail: tail, gaps: gaps)
        #expect(problems.isEmpty, "\(problems.count): \(problems.prefix(12))", sourceLocation: sourceLocation)
        #expect(account.storedCount > 0, sourceLocation: sourceLocation)
    }

    /// Ends the daemon, which must end well, and the stack, no part of which may have crashed.
    func end(_ daemon: ChildProcess, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0), sourceLocation: sourceLocation)
        try await stack.stop()
    }
}
