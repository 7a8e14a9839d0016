import GattherdDBus
import GattherdGATT

/// A `Device1`: the state of a peripheral in bluetoothd, as seen by one adapter.
struct SimulatedDevice: Sendable {
    /// A pending attempt to connect.
    struct Attempt: Hashable, Sendable {
        let id: UInt64
        /// The `Connect` call to answer.
        ///
        /// `Pair` and bluetoothd itself also start attempts.
        var call: CallToken?
        /// True while the peripheral does not advertise.
        var isWaiting = true
        /// True for the one retry that bluetoothd makes on its own.
        var isRetry = false
    }

    /// The actions for the moment when the closing link is down.
    struct Closing: Hashable, Sendable {
        var replies: [CallToken]
        var removesDevice: Bool
    }

    /// The state that is kept of a connected, trusted or paired device over a restart.
    struct Memory: Hashable, Sendable {
        let isTrusted: Bool
        let isBonded: Bool
    }

    let key: DeviceKey
    let path: String
    /// The time of the last advertisement or of the end of the last link.
    var lastSeen: Duration
    /// True while an expiry timer runs.
    var isExpiryArmed = false
    /// The signal strength; `nil` while no client scans.
    var rssi: Int16?
    var alias: String?
    var isTrusted = false
    var isBlocked = false
    var attempt: Attempt?
    var closing: Closing?
    var pairing: SimulatedPairing?
    var gatt: GATTObjects?
    var battery: UInt8?

    /// True if the link is or was encrypted, or a bond exists.
    private(set) var isPaired = false
    /// True if both sides keep keys: the next link is encrypted from the start.
    private(set) var isBonded = false
    private(set) var isConnected = false
    private(set) var isResolved = false
    private(set) var isEncrypted = false
    /// The number of the current or last link.
    ///
    /// Timers of earlier links are ignored.
    private(set) var linkEpoch: UInt64 = 0
    /// The advertising data of the last signal.
    private var signalledData: [Property]
    private var advertisementCount = 0

    init(_ key: DeviceKey, path: String, at now: Duration, data: [Property]) {
        self.key = key
        self.path = path
        lastSeen = now
        signalledData = data
    }

    /// True if bluetoothd removes the device some time after its last advertisement.
    var isTemporary: Bool { !isTrusted && !isPaired }

    /// Records an advertisement.
    ///
    /// Without an `rssi` the advertised one varies by one every eight advertisements. Returns the properties to
    /// signal: changed data, and changed signal strength.
    mutating func recordAdvertisement(
        _ advertising: AdvertisingSpec,
        rssi received: Int16?,
        at now: Duration,
        wantsDuplicates: Bool
    ) -> [Property] {
        lastSeen = now
        advertisementCount += 1
        let strength = received ?? advertising.rssi + [0, 1, 0, -1][advertisementCount / 8 % 4]
        let data = advertising.data(at: now)
        let changedRSSI = rssi == strength ? [] : [Property("RSSI", .int16(strength))]
        let changedData = signalledData != data || wantsDuplicates ? data : []
        rssi = strength
        signalledData = data
        return changedRSSI + changedData
    }

    /// Starts a link, which ends the attempt.
    mutating func linkUp(epoch: UInt64, peripheralHasKeys: Bool) {
        attempt = nil
        isConnected = true
        isEncrypted = isBonded && peripheralHasKeys
        linkEpoch = epoch
    }

    /// Shows a link that the kernel has kept after a crash of bluetoothd.
    mutating func adoptLink(epoch: UInt64) {
        isConnected = true
        linkEpoch = epoch
    }

    mutating func markResolved() {
        isResolved = true
    }

    /// Ends the link.
    ///
    /// Returns the properties to signal: those of the services, and those of the device.
    mutating func linkDown(at now: Duration) -> (services: [Property], device: [Property]) {
        let services = isResolved ? [Property("ServicesResolved", .boolean(false))] : []
        let paired = isPaired && !isBonded ? [Property("Paired", .boolean(false))] : []
        isPaired = isBonded
        isConnected = false
        isResolved = false
        isEncrypted = false
        closing = nil
        lastSeen = now
        return (services, paired + [Property("Connected", .boolean(false))])
    }

    /// Ends a successful pairing.
    ///
    /// Returns the properties to signal.
    mutating func finishPairing(makesBond: Bool) -> [Property] {
        pairing = nil
        isEncrypted = true
        isPaired = true
        isBonded = makesBond
        return (makesBond ? [Property("Bonded", .boolean(true))] : []) + [Property("Paired", .boolean(true))]
    }

    var memory: Memory { Memory(isTrusted: isTrusted, isBonded: isBonded) }

    /// Restores the state that an adapter keeps over a restart.
    mutating func restore(_ memory: Memory) {
        isTrusted = memory.isTrusted
        isPaired = memory.isBonded
        isBonded = memory.isBonded
    }
}

// MARK: - Properties

extension SimulatedDevice {
    /// The properties of `Device1`.
    func properties(of peripheral: PeripheralSpec, adapterPath: String, at now: Duration) -> [Property] {
        [
            Property("Address", .string(peripheral.address.description)),
            Property("AddressType", .string(peripheral.addressType)),
            Property("Alias", .string(alias(for: peripheral))),
            Property("Paired", .boolean(isPaired)),
            Property("Bonded", .boolean(isBonded)),
            Property("Trusted", .boolean(isTrusted)),
            Property("Blocked", .boolean(isBlocked)),
            Property("LegacyPairing", .boolean(false)),
            Property("Connected", .boolean(isConnected)),
            Property("UUIDs", uuids(of: peripheral)),
            Property("Adapter", .objectPath(adapterPath)),
            Property("ServicesResolved", .boolean(isResolved)),
        ] + peripheral.advertising.properties(at: now) + (rssi.map { [Property("RSSI", .int16($0))] } ?? [])
    }

    /// The alias that a client set, else the name, else the address with dashes.
    private func alias(for peripheral: PeripheralSpec) -> String {
        alias ?? peripheral.advertising.name
            ?? String(peripheral.address.description.map { $0 == ":" ? "-" : $0 })
    }

    /// The advertised and the discovered services.
    func uuids(of peripheral: PeripheralSpec) -> DBusValue {
        let discovered = gatt?.services.map { peripheral.services[$0.index].uuid } ?? []
        return .strings(Set(peripheral.advertising.services + discovered).map(\.canonical).sorted())
    }
}

extension AdvertisingSpec {
    fileprivate func properties(at now: Duration) -> [Property] {
        var properties: [Property] = []
        if let name { properties.append(Property("Name", .string(name))) }
        if let txPower { properties.append(Property("TxPower", .int16(txPower))) }
        if let appearance { properties.append(Property("Appearance", .uint16(appearance))) }
        return properties + data(at: now)
    }

    /// `ManufacturerData` and `ServiceData` at a time, if there are any.
    func data(at now: Duration) -> [Property] {
        let turn = turn(at: now)
        let manufacturer = manufacturerData.sorted { $0.key < $1.key }
            .map { DBusEntry(.uint16($0.key), .variant(.bytes($0.value[turn % $0.value.count]))) }
        let service = serviceData.sorted { $0.key.canonical < $1.key.canonical }
            .map { DBusEntry(.string($0.key.canonical), .variant(.bytes($0.value[turn % $0.value.count]))) }
        return [
            Property("ManufacturerData", .dictionary(key: "q", value: "v", manufacturer)),
            Property("ServiceData", .dictionary(key: "s", value: "v", service)),
        ].filter { $0.value.entries != [] }
    }
}
