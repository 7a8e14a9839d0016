import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdSync
import Testing

@testable import GattherdDaemon

@Suite(.timeLimit(.minutes(1))) struct AdapterRequestsTests {
    @Test func `adapters in a power cycle are switched on at once while bluetoothd hangs`() async throws {
        let central = FakeCentral()
        // Switching off fails, and the adapters may go off later.
        central.state.withLock { $0.hangingPowerChanges = 4 }
        var requests = AdapterRequests(central, log: .silent) { _ in }
        let adapters = try ["00:00:00:00:00:01", "00:00:00:00:00:02"].map { try #require(BluetoothAddress($0)) }
        await withDiscardingTaskGroup { group in
            for adapter in adapters { requests.powerCycle(adapter, in: &group) }
            await central.wait(for: .setPowered(false), times: 2)
            group.cancelAll()
        }
        await withDiscardingTaskGroup { [requests] group in
            group.addTask { await requests.finishPowerCycles() }
            await central.wait(for: .setPowered(true), times: 2)
            group.cancelAll()
        }
        #expect(central.calls.state.count { $0 == .setPowered(true) } == 2)
    }
}
