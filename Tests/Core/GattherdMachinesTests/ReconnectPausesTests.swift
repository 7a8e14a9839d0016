import GattherdMachines
import Testing

@Suite struct ReconnectPausesTests {
    private static let lost = BrokerFault(.lost, "the link to the broker is gone")
    private var pauses = ReconnectPauses(
        Backoff(minimum: .seconds(1), maximum: .seconds(64)),
        refused: Backoff(minimum: .seconds(600), maximum: .seconds(600)),
        stable: .seconds(10),
        seed: 1
    )

    /// Returns the longest of many pauses, each after six failures and a session of `duration`.
    private mutating func longestPause(afterSession duration: Duration) -> Duration {
        let all = (0..<100).map { _ in
            for _ in 0..<6 { _ = pauses.next(after: Self.lost) }
            pauses.sessionEnded(after: duration)
            return pauses.next(after: Self.lost)
        }
        return all.max() ?? .zero
    }

    @Test mutating func `a good session resets the pauses, a short one does not`() {
        #expect(longestPause(afterSession: .seconds(10)) <= .seconds(2))
        #expect(longestPause(afterSession: .milliseconds(9999)) > .seconds(32))
    }

    @Test mutating func `a refusal that needs a configuration change has its own pause`() {
        let refused = BrokerFault(.credentials, "not authorized")
        #expect(refused.needsConfigurationChange)
        #expect(pauses.next(after: refused) == .seconds(600))
        #expect(pauses.next(after: Self.lost) <= .seconds(4))
    }
}
