/// A remote device, identified by its address and the adapter.
///
/// A `Peripheral` may be used before and after its connection: operations that need a link throw `notConnected`
/// without one.
public struct Peripheral: Sendable, Identifiable {
    public let id: PeripheralID
    /// The central that uses the peripheral.
    public let central: Central

    init(_ id: PeripheralID, of central: Central) {
        self.id = id
        self.central = central
    }

    public var address: BluetoothAddress { id.address }
    /// The advertised name: untrusted text from the air.
    public var name: String? { central.status(id)?.name }
    /// The signal strength in dBm; `nil` unless a scan receives the peripheral.
    public var rssi: Int? { central.status(id)?.rssi }
    /// The time of the last advertisement; `nil` without any, or after the peripheral was removed.
    public var lastSeen: ContinuousClock.Instant? { central.lastSeen(id) }
    public var isPaired: Bool { central.status(id)?.isPaired ?? false }
    /// The UUIDs of the advertised or discovered services.
    public var advertisedServices: [BluetoothUUID] { central.status(id)?.services ?? [] }
    public var advertisementData: AdvertisementData { central.status(id)?.advertisement ?? AdvertisementData() }

    /// Each new ``name``, from now on.
    public func nameChanges() -> BufferedSequence<String?> {
        central.withLink(id) { $0.names.listen(.bufferingNewest(16)) }
    }
}

extension Peripheral: Hashable {
    public static func == (left: Peripheral, right: Peripheral) -> Bool {
        left.id == right.id && left.central === right.central
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(id)
    }
}

extension Peripheral: CustomStringConvertible {
    public var description: String { name.map { "\(address) (\($0))" } ?? "\(address)" }
}
