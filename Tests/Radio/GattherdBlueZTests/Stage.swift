import GattherdBlueZ
import GattherdBluetooth
import GattherdDBus
import GattherdGATT
import GattherdLog
import GattherdModel
import GattherdSync
import TestKit

/// A bus, a fake bluetoothd and the central under test, running.
struct Stage {
    let bus: PrivateBus
    let fake: FakeBlueZ
    let central: BlueZCentral
    let events: EventReader
    let sink = RecordingSink()

    static let adapter = BluetoothAddress("00:00:5E:00:53:01").unsafelyKnown
    static let peripheral = PeripheralID(adapter: adapter, address: BluetoothAddress("C0:FF:EE:00:00:01").unsafelyKnown)
    static let measurement = BluetoothUUID(0x2A37)
    static let control = BluetoothUUID(0x2A39)

    /// Runs `body` when the central knows the fake's objects; everything has ended when this returns.
    static func run(
        limits: BlueZCentral.Limits = BlueZCentral.Limits(),
        loop: EventLoop? = nil,
        log: Log = .silent,
        _ body: (Stage) async throws -> Void
    ) async throws {
        let bus = try PrivateBus()
        let fake = try await FakeBlueZ(bus.address)
        let central = BlueZCentral(bus: .address(bus.address), loop: loop, limits: limits, log: log)
        let stage = Stage(bus: bus, fake: fake, central: central, events: EventReader(central.events))
        async let running: Void = central.run()
        let result: Result<Void, any Error>
        do {
            try await stage.events.expect(.available)
            try await body(stage)
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await central.close()
        await running
        await fake.crash()
        try result.get()
    }

    /// Connects, and gives the characteristic of that UUID.
    func connected(_ uuid: BluetoothUUID = measurement) async throws -> RemoteCharacteristic {
        try await central.connect(Self.peripheral, timeout: .seconds(20))
        let table = try await central.characteristics(of: Self.peripheral, timeout: .seconds(20))
        guard let found = table.first(where: { $0.uuid == uuid }) else { throw NotThere() }
        return found
    }

    func subscribe(_ characteristic: RemoteCharacteristic, _ path: NotificationPath = .signals) async throws {
        try await central.subscribe(to: characteristic, by: path, token: SubscriptionToken(1), sink: sink)
    }

    struct NotThere: Error {}
}

extension EventLoop {
    /// Holds the loop's thread until `body` has returned: the loop then finds at once what has arrived meanwhile.
    func standStill(while body: () async throws -> Void) async rethrows {
        let gate = SocketPair()
        await withCheckedContinuation { standing in
            execute {
                standing.resume()
                gate.waitForPacket()
            }
        }
        defer { gate.send([0]) }
        try await body()
    }
}

extension Optional {
    /// For literals that are right by construction.
    var unsafelyKnown: Wrapped {
        switch self {
        case .some(let value): value
        case .none: preconditionFailure("a literal of the test is wrong")
        }
    }
}

/// Reads the central's events, in order; for one task at a time.
struct EventReader: Sendable {
    private let events: AsyncStream<CentralEvent>
    private let log = Locked<[CentralEvent]>([])

    struct Ended: Error {
        let seen: [CentralEvent]
    }

    init(_ events: AsyncStream<CentralEvent>) {
        self.events = events
    }

    /// All that was read until now.
    var seen: [CentralEvent] { log.withLock { $0 } }

    var hasLostBlueZ: Bool { seen.contains { if case .unavailable = $0 { true } else { false } } }

    /// Reads events until `matches` returns true.
    @discardableResult
    func next(where matches: (CentralEvent) -> Bool) async throws -> CentralEvent {
        for await event in events {
            log.withLock { $0.append(event) }
            if matches(event) { return event }
        }
        throw Ended(seen: seen)
    }

    func expect(_ event: CentralEvent) async throws {
        try await next { $0 == event }
    }

    /// Reads to the end.
    func rest() async -> [CentralEvent] {
        await events.reduce(into: []) { $0.append($1) }
    }
}

/// The result of an operation, for `async let`.
func outcome<Success: Sendable>(
    of operation: sending () async throws(BluetoothError) -> Success
) async -> Result<Success, BluetoothError> {
    do throws(BluetoothError) {
        return .success(try await operation())
    } catch {
        return .failure(error)
    }
}

extension Result where Failure == BluetoothError {
    var kind: BluetoothError.Kind? {
        if case .failure(let error) = self { error.kind } else { nil }
    }
}

/// A sink that records the values.
final class RecordingSink: NotificationSink {
    struct Value: Hashable, Sendable {
        let octets: [UInt8]
        let token: UInt64
        var isRead = false
    }

    private let board = LatestValue<[Value]>([])

    /// The number of values at the last flush.
    private let flushed = LatestValue(0)

    var values: [[UInt8]] { board.state.map(\.octets) }
    /// The values that another client may have read.
    var reads: [[UInt8]] { board.state.filter(\.isRead).map(\.octets) }

    func receive(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp) {
        let value = Value(octets: octets.indices.map { octets[$0] }, token: token.value)
        board.update { $0.append(value) }
    }

    func receiveRead(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp) {
        let value = Value(octets: octets.indices.map { octets[$0] }, token: token.value, isRead: true)
        board.update { $0.append(value) }
    }

    func flush() { flushed.set(board.state.count) }

    /// Waits for the flush after so many values.
    func waitForFlush(at count: Int) async {
        for await flushed in flushed.watch() where flushed == count { return }
    }

    /// Waits for so many values, and gives all.
    func values(_ count: Int) async -> [[UInt8]] {
        for await values in board.watch() where values.count >= count { return values.map(\.octets) }
        return []
    }
}
