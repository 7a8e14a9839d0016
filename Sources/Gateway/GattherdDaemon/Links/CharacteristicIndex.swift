import GattherdBluetooth
import GattherdGATT
import GattherdModel

/// The characteristics of a GATT table, indexed by UUID and service.
struct CharacteristicIndex: Sendable {
    /// The maximum number of services in words.
    private static let maximumNamed = 16

    /// The services of all characteristics.
    let services: Set<BluetoothUUID>
    /// The characteristics by UUID, in the order of the table.
    private let byUUID: [BluetoothUUID: [RemoteCharacteristic]]

    init(_ table: [RemoteCharacteristic]) {
        services = Set(table.map(\.service))
        byUUID = Dictionary(grouping: table, by: \.uuid)
    }

    /// The services in words, for faults: a peripheral may have thousands, of which a few are named.
    var servicesInWords: String {
        let all = services.map(\.description).sorted()
        let named = all.prefix(Self.maximumNamed).joined(separator: ", ")
        return all.count > Self.maximumNamed ? "\(named) and \(all.count - Self.maximumNamed) more" : named
    }

    /// True if the table has a characteristic with the UUID, in any service.
    func contains(_ uuid: BluetoothUUID) -> Bool { byUUID[uuid] != nil }

    /// The first characteristic with the UUID, in any service.
    func first(_ uuid: BluetoothUUID) -> RemoteCharacteristic? { byUUID[uuid]?.first }

    /// True if the profile serves the table although the configuration does not name it.
    func matches(_ profile: any Profile) -> Bool {
        guard !profile.isOptIn else { return false }
        guard profile.services.isEmpty else { return profile.services.contains { services.contains($0) } }
        return profile.characteristics.contains { contains($0.uuid) }
    }

    /// Returns the first characteristic with the UUID in the service, or without one in a service of the profile.
    ///
    /// Of several, one whose properties are `suitable` takes precedence: some devices write and notify by two.
    func find(
        _ uuid: BluetoothUUID,
        in service: BluetoothUUID?,
        for profile: any Profile,
        _ suitable: (CharacteristicProperties) -> Bool
    ) -> RemoteCharacteristic? {
        let fitting = (byUUID[uuid] ?? []).filter { fits($0.service, service, profile) }
        return fitting.first { suitable($0.properties) } ?? fitting.first
    }

    /// Returns the characteristics that match a profile's characteristic, in the order of the table.
    ///
    /// Some devices write and notify by two characteristics of one UUID. Those that can only be written are left out if
    /// others have values.
    func candidates(_ wanted: CharacteristicDescriptor, for profile: any Profile) -> [RemoteCharacteristic] {
        let fitting = (byUUID[wanted.uuid] ?? []).filter {
            fits($0.service, wanted.service, profile) && (wanted.handle ?? $0.handle) == $0.handle
                && (wanted.poll == nil || $0.properties.isNotifying)
        }
        let withValues = fitting.filter { $0.properties.isNotifying || $0.properties.isReadable }
        return withValues.isEmpty ? fitting : withValues
    }

    /// Returns the characteristic that a stream's requests are written to.
    func control(of poll: PollRule, for profile: any Profile) -> RemoteCharacteristic? {
        byUUID[poll.characteristic]?.first { fits($0.service, poll.service, profile) && $0.properties.isWritable }
    }

    private func fits(_ found: BluetoothUUID, _ wanted: BluetoothUUID?, _ profile: any Profile) -> Bool {
        if let wanted { found == wanted } else { profile.services.isEmpty || profile.services.contains(found) }
    }
}
