import GattherdDaemon
import GattherdLog
import GattherdModel
import GattherdSync
import Testing

/// The order in which the daemon ends.
@Suite(.timeLimit(.minutes(1))) struct GatewayStopTests {
    /// An output that delivers the rest only after the leases were released.
    private struct SlowOutput: Output {
        let name = "slow"
        let hasReleased: LatestValue<Bool>
        let hasStopped = LatestValue(false)

        var status: OutputStatus { OutputStatus(target: "nowhere") }

        func run() async { for await hasStopped in hasStopped.watch() where hasStopped { return } }

        func roundTrip() async {}

        func stop(within limit: Duration) async {
            for await hasReleased in hasReleased.watch() where hasReleased { break }
            hasStopped.set(true)
        }
    }

    @Test func `leases are released when the links have ended, without a wait for the outputs`() async {
        let hasReleased = LatestValue(false)
        let output = SlowOutput(hasReleased: hasReleased)
        let gateway = Gateway(
            devices: [],
            profiles: [],
            central: FakeCentral(),
            store: FakeStore(),
            outputs: [output],
            settings: Supervisor.Settings(),
            commitInterval: .zero,
            log: .silent,
            now: { Timestamp(microseconds: 1) }
        )
        await gateway.run {
            #expect(!hasReleased.state)
        } linksEnded: {
            hasReleased.set(true)
        }
        #expect(output.hasStopped.state)
    }
}
