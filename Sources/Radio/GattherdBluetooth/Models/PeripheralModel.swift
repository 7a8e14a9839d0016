public import Observation

/// The observable model of a peripheral for a user interface, created by ``CentralModel/model(of:)``.
@MainActor @Observable public final class PeripheralModel: Identifiable {
    public let peripheral: Peripheral
    public private(set) var connectionState: ConnectionState
    /// The reason why the last link ended by itself; `nil` if it did not.
    public private(set) var lostBecause: DisconnectReason?
    /// The error of the last lost link or failed attempt, until the peripheral is ready or disconnected on request.
    public private(set) var connectionError: BluetoothError?
    public private(set) var isReconnecting = false
    public private(set) var isPaired = false
    public private(set) var name: String?
    /// The signal strength in dBm; `nil` unless a scan receives the peripheral.
    public private(set) var rssi: Int?
    /// The services found by ``discoverServices()``; empty without a link.
    public private(set) var services: [Service] = []
    /// The newest value of each characteristic that notifies, while ``followValues()`` runs.
    ///
    /// The keys have the service, for example `CharacteristicID(0x2A37, in: 0x180D)`.
    public private(set) var values: [CharacteristicID: [UInt8]] = [:]

    public nonisolated var id: PeripheralID { peripheral.id }

    init(_ peripheral: Peripheral) {
        self.peripheral = peripheral
        connectionState = peripheral.connectionState
        update()
    }

    /// Stores the newest value of each subscribed characteristic until the task is cancelled.
    public func followValues() async {
        let updates = peripheral.valueUpdates(buffering: .bufferingNewest(256))
        for await value in updates {
            values[CharacteristicID(value.characteristic.uuid, in: value.characteristic.service)] = value.octets
        }
    }

    /// Discovers the peripheral's services.
    ///
    /// - Throws: As ``Peripheral/discoverServices(_:timeout:)``.
    public func discoverServices() async throws {
        let found = try await peripheral.discoverServices()
        // The link may have ended before this task continues.
        services = peripheral.connectionState.isConnected ? found : []
    }

    /// True while the peripheral has a link, or the central tries to make one.
    var isInUse: Bool {
        if case .disconnected = peripheral.connectionState { peripheral.isReconnecting } else { true }
    }

    func update() {
        connectionState = peripheral.connectionState
        connectionError = peripheral.connectionError
        isReconnecting = peripheral.isReconnecting
        updateStatus()
    }

    /// Updates the properties that do not belong to the connection.
    func updateStatus() {
        isPaired = peripheral.isPaired
        name = peripheral.name
        rssi = peripheral.rssi
    }

    func apply(_ change: ConnectionStateChange) {
        update()
        connectionState = change.state
        connectionError = change.error ?? (change.state == .connecting ? connectionError : peripheral.connectionError)
        if change.reason != nil { isReconnecting = change.willReconnect }
        if change.isUnexpectedDisconnect { lostBecause = change.reason }
        if change.state == .ready { lostBecause = nil }
        if !change.state.isConnected { services = [] }
    }
}
