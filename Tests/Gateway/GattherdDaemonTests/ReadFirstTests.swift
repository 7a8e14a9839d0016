import GattherdBluetooth
import GattherdDaemon
import GattherdGATT
import GattherdModel
import GattherdSync
import Testing

/// Characteristics whose value decides how others are decoded, such as the resistance range of a fitness machine.
@Suite(.timeLimit(.minutes(1))) struct ReadFirstTests {
    @Test func `a value that other streams need is read before these are subscribed`() async throws {
        let bench = try Bench([ScaledProfile()])
        bench.central.state.withLock { $0.notifiedAtOnce = [2] }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            await bench.store.wait { $0.readings.count == 2 }
        }
        #expect(await bench.store.readings.map(\.stream) == ["factor", "level"])
        #expect(await bench.store.readings.last?.values == [.integer(14)])
        #expect(bench.central.calls.state.count { $0 == .read } == 1)
    }
}

/// A profile whose level is multiplied by the value of another characteristic.
private struct ScaledProfile: Profile {
    let name = "scaled"
    let title = "A scaled octet"
    let services: [BluetoothUUID] = [0xFFF0]
    let isOptIn = false
    let controls: [ControlDescriptor] = []
    let tasks: [ConnectionTaskDescriptor] = []
    let origin = "test"
    let revision = 0
    let characteristics = [
        CharacteristicDescriptor(
            uuid: 0xFFF1,
            stream: "level",
            metrics: [MetricDescriptor(name: "level")],
            subscription: .notify
        ),
        CharacteristicDescriptor(
            uuid: 0xFFF2,
            stream: "factor",
            metrics: [MetricDescriptor(name: "factor")],
            isReadAtConnect: true,
            isReadFirst: true
        ),
    ]

    func makeDecoder() -> any PayloadDecoder { ScaledDecoder() }

    func encode(control: Int, value: ControlValue) throws(ControlError) -> [UInt8] {
        throw .noSuchControl("number \(control)")
    }
}

private final class ScaledDecoder: PayloadDecoder {
    private var factor: Int64 = 0

    func decode(_ payload: Span<UInt8>, characteristic: Int, into samples: inout [Sample]) throws(PayloadError) {
        var cursor = PayloadCursor(payload)
        let value = Int64(try cursor.u8())
        if characteristic == 1 { factor = value }
        samples.append(Sample(metric: 0, value: .integer(characteristic == 1 ? value : value * factor)))
    }
}
