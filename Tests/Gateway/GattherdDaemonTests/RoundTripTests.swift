import GattherdDaemon
import GattherdLog
import GattherdModel
import GattherdSync
import Testing

/// The round trip through every loop that feeds systemd's watchdog.
@Suite(.timeLimit(.minutes(1))) struct RoundTripTests {
    private let central = FakeCentral()
    private let store = FakeStore()

    private func run(_ body: @Sendable (Gateway) async -> Void) async {
        let gateway = Gateway(
            devices: [],
            profiles: [],
            central: central,
            store: store,
            settings: Supervisor.Settings(),
            commitInterval: .zero,
            log: .silent,
            now: { Timestamp(microseconds: 1) }
        )
        await gateway.run { await body(gateway) }
    }

    @Test func `a stuck loop holds the round trip and later loops are not checked`() async {
        central.attends.set(false)
        await run { gateway in
            let hasReturned = LatestValue(false)
            await withTaskGroup { group in
                group.addTask {
                    await gateway.roundTrip()
                    hasReturned.set(true)
                }
                await central.wait(for: .roundTrip)
                #expect(!hasReturned.state)
                central.attends.set(true)
                for await state in hasReturned.watch() where state { break }
            }
        }
    }

    @Test func `the round trip returns repeatedly while idle`() async {
        await run { gateway in for _ in 0..<3 { await gateway.roundTrip() } }
        #expect(central.calls.state.count { $0 == .roundTrip } == 3)
    }
}
