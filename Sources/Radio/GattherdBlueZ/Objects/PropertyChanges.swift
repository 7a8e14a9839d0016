import GattherdBluetooth
import GattherdDBus
import GattherdGATT
import GattherdModel

/// The new values of some properties, and the properties that were invalidated.
struct PropertyChanges {
    let changed: DBusValue
    let invalidated: [String]
    /// True for a signal, false for the answer to a call.
    var isSignalled = true

    /// The properties of a device that nothing but an advertisement changes.
    private static let advertisedProperties: Set<String> = [
        "AdvertisingData", "AdvertisingFlags", "ManufacturerData", "RSSI", "ServiceData", "TxPower",
    ]

    /// The new value of a property.
    subscript(name: String) -> DBusValue? { changed[name] }

    /// Sets `property` to its new value, or to `nil` if it was invalidated.
    func update<Value>(_ property: inout Value?, _ name: String, _ read: (DBusValue) -> Value?) {
        if let value = self[name].flatMap(read) {
            property = value
        } else if invalidated.contains(name) {
            property = nil
        }
    }

    /// True for the changes of an advertisement: they have a signal strength or payload data.
    var isAdvertisement: Bool {
        isSignalled
            && (self["RSSI"]?.decibels != nil || self["ManufacturerData"]?.entries != nil
                || self["ServiceData"]?.entries != nil)
    }

    /// True if there is nothing but what an advertisement changes.
    ///
    /// In busy air these signals are by far the most frequent ones.
    var areOfAdvertisementOnly: Bool {
        guard isAdvertisement, invalidated.isEmpty else { return false }
        return changed.entries?.allSatisfy { Self.advertisedProperties.contains($0.key.string ?? "") } ?? false
    }
}

extension DBusValue {
    /// A power in dBm, as BlueZ states it; `nil` outside the range of 16 bits.
    var decibels: Int? { int.flatMap { Int16(exactly: $0) }.map { Int($0) } }
}

extension AdvertisementData {
    /// The maximum number of entries of one kind in memory, because BlueZ accumulates all data that a peripheral has
    /// ever advertised.
    private static let maximumEntries = 1024

    /// Applies the data of an advertisement; returns the frames that it certainly had.
    ///
    /// BlueZ accumulates entries: of several, only the changed ones are known to be new.
    mutating func hear(_ changes: PropertyChanges) -> [HeardAdvertisement.Frame] {
        let before = self
        apply(changes)
        var frames: [HeardAdvertisement.Frame] = []
        if changes["ManufacturerData"]?.entries != nil {
            let isOnly = manufacturerData.count == 1
            let new = manufacturerData.filter { isOnly || before.manufacturerData[$0.key] != $0.value }
            frames += new.sorted { $0.key < $1.key }.map { .init(.manufacturer($0.key), $0.value) }
        }
        if changes["ServiceData"]?.entries != nil {
            let isOnly = serviceData.count == 1
            let new = serviceData.filter { isOnly || before.serviceData[$0.key] != $0.value }
            frames += new.sorted { $0.key.canonical < $1.key.canonical }.map { .init(.serviceData($0.key), $0.value) }
        }
        return frames
    }

    /// The number of companies and services that have sent data.
    var sourceCount: Int { manufacturerData.count + serviceData.count }

    /// True if there is no other data of the same kind.
    func isAlone(_ source: AdvertisementSource) -> Bool {
        switch source {
        case .manufacturer: manufacturerData.count == 1
        case .serviceData: serviceData.count == 1
        }
    }

    mutating func apply(_ changes: PropertyChanges) {
        changes.update(&txPower, "TxPower", \.decibels)
        changes.update(&appearance, "Appearance") { $0.int.flatMap { UInt16(exactly: $0) } }
        changes.update(&flags, "AdvertisingFlags") { $0.bytes?.first }
        update(&manufacturerData, changes, "ManufacturerData") { $0.int.flatMap { UInt16(exactly: $0) } }
        update(&serviceData, changes, "ServiceData") { $0.string.flatMap { BluetoothUUID($0) } }
    }

    private func update<Key: Hashable>(
        _ data: inout [Key: [UInt8]],
        _ changes: PropertyChanges,
        _ name: String,
        key: (DBusValue) -> Key?
    ) {
        var value: [Key: [UInt8]]? = data
        changes.update(&value, name) { all in
            all.entries?.prefix(Self.maximumEntries).reduce(into: [:]) { data, entry in
                guard let key = key(entry.key), let octets = entry.value.bytes else { return }
                data[key] = octets
            }
        }
        data = value ?? [:]
    }
}
