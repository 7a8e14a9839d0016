public import GattherdGATT
public import GattherdLog

/// A backend that passes everything on to another one, and logs each operation.
///
/// An operation is one line at `debug`, with its duration and result. The bytes that it reads or writes are a line at
/// `trace`. Notified values are not logged.
public final class LoggedBackend: CentralBackend {
    private let base: any CentralBackend
    private let log: Log
    private let name: @Sendable (BluetoothAddress) -> String?

    /// - Parameters:
    ///   - base: The backend that performs the operations.
    ///   - log: The log of the lines.
    ///   - name: Returns the name of the peripheral at an address, which its lines contain; `nil` if it has none.
    public init(
        _ base: any CentralBackend,
        log: Log,
        name: @escaping @Sendable (BluetoothAddress) -> String? = { _ in nil }
    ) {
        (self.base, self.log, self.name) = (base, log, name)
    }

    private func log(of address: BluetoothAddress) -> OperationLog {
        OperationLog(name(address).map { log.with(LogField("device", $0)) } ?? log, address)
    }

    /// Performs an operation, and writes its result.
    private func record<Value>(
        _ operation: BluetoothError.Operation,
        _ subject: CharacteristicID? = nil,
        of address: BluetoothAddress,
        _ body: () async throws(BluetoothError) -> Value
    ) async throws(BluetoothError) -> Value {
        let start = ContinuousClock.now
        do throws(BluetoothError) {
            let value = try await body()
            log(of: address).finished(operation, subject, since: start, nil)
            return value
        } catch {
            log(of: address).finished(operation, subject, since: start, error)
            throw error
        }
    }

    // MARK: - Links

    public func connect(_ peripheral: PeripheralID, timeout: Duration) async throws(BluetoothError) {
        try await record(.connect, of: peripheral.address) { () throws(BluetoothError) in
            try await base.connect(peripheral, timeout: timeout)
        }
    }

    public func disconnect(_ peripheral: PeripheralID) async throws(BluetoothError) {
        try await record(.disconnect, of: peripheral.address) { () throws(BluetoothError) in
            try await base.disconnect(peripheral)
        }
    }

    public func pair(
        _ peripheral: PeripheralID,
        by method: PairingMethod,
        timeout: Duration
    ) async throws(BluetoothError) {
        try await record(.pair, of: peripheral.address) { () throws(BluetoothError) in
            try await base.pair(peripheral, by: method, timeout: timeout)
        }
    }

    public func forget(_ peripheral: PeripheralID) async throws(BluetoothError) {
        try await record(.forget, of: peripheral.address) { () throws(BluetoothError) in
            try await base.forget(peripheral)
        }
    }

    // MARK: - GATT

    public func characteristics(
        of peripheral: PeripheralID,
        timeout: Duration
    ) async throws(BluetoothError) -> [RemoteCharacteristic] {
        try await record(.discover, of: peripheral.address) { () throws(BluetoothError) in
            try await base.characteristics(of: peripheral, timeout: timeout)
        }
    }

    public func services(of peripheral: PeripheralID, timeout: Duration) async throws(BluetoothError) -> [RemoteService]
    {
        try await record(.discover, of: peripheral.address) { () throws(BluetoothError) in
            try await base.services(of: peripheral, timeout: timeout)
        }
    }

    public func read(_ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> [UInt8] {
        try await read(CharacteristicID(characteristic), of: characteristic) { () throws(BluetoothError) in
            try await base.read(characteristic)
        }
    }

    public func read(_ descriptor: RemoteDescriptor) async throws(BluetoothError) -> [UInt8] {
        try await read(CharacteristicID(descriptor.uuid), of: descriptor.characteristic) {
            () throws(BluetoothError) in
            try await base.read(descriptor)
        }
    }

    private func read(
        _ subject: CharacteristicID,
        of characteristic: RemoteCharacteristic,
        _ body: () async throws(BluetoothError) -> [UInt8]
    ) async throws(BluetoothError) -> [UInt8] {
        let address = characteristic.peripheral.address
        let octets = try await record(.read, subject, of: address, body)
        log(of: address).bytes(.read, subject, octets)
        return octets
    }

    public func write(
        _ octets: [UInt8],
        to characteristic: RemoteCharacteristic,
        withResponse: Bool
    ) async throws(BluetoothError) {
        let (subject, address) = (CharacteristicID(characteristic), characteristic.peripheral.address)
        log(of: address).bytes(.write, subject, octets)
        try await record(.write, subject, of: address) { () throws(BluetoothError) in
            try await base.write(octets, to: characteristic, withResponse: withResponse)
        }
    }

    public func subscribe(
        to characteristic: RemoteCharacteristic,
        by path: NotificationPath,
        token: SubscriptionToken,
        sink: any NotificationSink
    ) async throws(BluetoothError) {
        let (subject, address) = (CharacteristicID(characteristic), characteristic.peripheral.address)
        try await record(.subscribe, subject, of: address) { () throws(BluetoothError) in
            try await base.subscribe(to: characteristic, by: path, token: token, sink: sink)
        }
    }

    // MARK: - Without a line

    public var events: AsyncStream<CentralEvent> { base.events }

    public func run() async { await base.run() }

    public func close() async { await base.close() }

    public func startDiscovery(on adapter: BluetoothAddress) async throws(BluetoothError) {
        try await base.startDiscovery(on: adapter)
    }

    public func stopDiscovery(on adapter: BluetoothAddress) async throws(BluetoothError) {
        try await base.stopDiscovery(on: adapter)
    }

    public func watch(_ advertisements: AdvertisementWatch) async { await base.watch(advertisements) }

    /// Ends a subscription without a line, because a token does not name the peripheral.
    public func unsubscribe(_ token: SubscriptionToken) async throws(BluetoothError) {
        try await base.unsubscribe(token)
    }

    public func setPowered(_ isPowered: Bool, adapter: BluetoothAddress) async throws(BluetoothError) {
        try await base.setPowered(isPowered, adapter: adapter)
    }

    public func reconnectToBus() async { await base.reconnectToBus() }

    public func isResponsive() async -> Bool { await base.isResponsive() }

    public func catchUp(within limit: Duration) async { await base.catchUp(within: limit) }

    public func roundTrip() async { await base.roundTrip() }

    public func answerPairing(with delegate: any PairingDelegate) async { await base.answerPairing(with: delegate) }

    public func bonds() async throws(BluetoothError) -> [Bond] { try await base.bonds() }
}
