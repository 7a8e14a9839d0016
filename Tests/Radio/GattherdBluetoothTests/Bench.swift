import GattherdSync
import Testing

@testable import GattherdBluetooth

/// A central on a fake backend, running.
struct Bench {
    let backend: FakeBackend
    let central: Central

    var strap: Peripheral {
        get throws { try #require(central.peripheral(FakeBackend.strap.address)) }
    }

    /// Runs `body` when the adapter is on; everything has ended when this returns.
    static func run(
        turns: ConnectTurns = ConnectTurns(),
        waits: WaitLimits = WaitLimits(),
        _ configure: (inout Central.Configuration) -> Void = { _ in },
        _ body: (Bench) async throws -> Void
    ) async throws {
        try await run(on: FakeBackend(), turns: turns, waits: waits, configure) { bench in
            try await bench.central.waitUntilReady()
            try await body(bench)
        }
    }

    static func run(
        on backend: FakeBackend,
        turns: ConnectTurns = ConnectTurns(),
        waits: WaitLimits = WaitLimits(),
        _ configure: (inout Central.Configuration) -> Void = { _ in },
        _ body: (Bench) async throws -> Void
    ) async throws {
        var configuration = Central.Configuration()
        configure(&configuration)
        let central = Central(backend, configuration, .silent, turns, waits)
        try await central.run { central in try await body(Bench(backend: backend, central: central)) }
        #expect(backend.pending.state == 0)
    }

    /// The strap, seen and connected, with a table.
    @discardableResult
    func connected(autoconnect: Autoconnect? = nil) async throws -> Peripheral {
        backend.setServices(Self.table)
        backend.advertise(FakeBackend.strap)
        let strap = try strap
        try await central.connect(strap, autoconnect: autoconnect)
        return strap
    }

    // MARK: - The table

    static let table: [RemoteService] = {
        var heart = RemoteService(peripheral: FakeBackend.strap, uuid: 0x180D, handle: "s1", isPrimary: true)
        let measurement = characteristic(0x180D, 0x2A37, "measurement", [.notify])
        heart.characteristics = [measurement, characteristic(0x180D, 0x2A39, "control", [.write, .indicate])]
        heart.descriptors = [RemoteDescriptor(characteristic: measurement, uuid: 0x2901, handle: "description")]
        var battery = RemoteService(peripheral: FakeBackend.strap, uuid: 0x180F, handle: "s2", isPrimary: true)
        battery.characteristics = [
            characteristic(0x180F, 0x2A19, "level", [.read, .notify, .write, .writeWithoutResponse])
        ]
        var other = RemoteService(peripheral: FakeBackend.strap, uuid: 0x180F, handle: "s3", isPrimary: false)
        other.characteristics = [characteristic(0x180F, 0x2A19, "level2", [.read])]
        battery.includes = ["s3"]
        return [heart, battery, other]
    }()

    private static func characteristic(
        _ service: BluetoothUUID,
        _ uuid: BluetoothUUID,
        _ handle: String,
        _ properties: CharacteristicProperties
    ) -> RemoteCharacteristic {
        RemoteCharacteristic(
            peripheral: FakeBackend.strap,
            service: service,
            uuid: uuid,
            handle: handle,
            properties: properties
        )
    }
}

/// The result of an operation.
func outcome<Success: Sendable>(
    _ operation: () async throws -> Success
) async -> Result<Success, BluetoothError> {
    do {
        return .success(try await operation())
    } catch let error as BluetoothError {
        return .failure(error)
    } catch {
        Issue.record("\(error) is no BluetoothError")
        return .failure(BluetoothError(.other, "\(error)"))
    }
}

extension Result where Failure == BluetoothError {
    var error: BluetoothError? {
        if case .failure(let error) = self { error } else { nil }
    }
}

extension BufferedSequence where Element == ConnectionStateChange {
    /// Reads changes until one leads to `state`; the current state counts only if `orPresent` is true.
    @discardableResult
    func wait(for state: ConnectionState, orPresent: Bool = false) async -> ConnectionStateChange? {
        for await change in self where change.state == state && (orPresent || !change.isInitial) { return change }
        return nil
    }
}
