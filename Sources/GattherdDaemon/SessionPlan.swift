import GattherdBluetooth
import GattherdGATT
import GattherdModel

/// Which characteristics of a connected peripheral serve which profile.
struct SessionPlan: Sendable {
    struct Stream: Sendable {
        let profile: any Profile
        /// The position in the profile's characteristics.
        let index: Int
        let remote: RemoteCharacteristic

        var descriptor: CharacteristicDescriptor { profile.characteristics[index] }
    }

    struct Control: Sendable {
        let profile: any Profile
        /// The position in the profile's controls.
        let index: Int
        let remote: RemoteCharacteristic

        var descriptor: ControlDescriptor { profile.controls[index] }
    }

    private(set) var profiles: [any Profile] = []
    private(set) var streams: [Stream] = []
    private(set) var controls: [Control] = []

    /// Matches profiles with a GATT table; a characteristic serves the first profile that wants it.
    ///
    /// - Parameters:
    ///   - candidates: Profiles in order of preference.
    ///   - areChosen: True when a person named them for this device: then all must fit.
    ///   - table: The peripheral's characteristics.
    /// - Throws: A permanent ``LinkFault`` when nothing fits.
    init(candidates: [any Profile], areChosen: Bool, table: [RemoteCharacteristic]) throws(LinkFault) {
        let services = Set(table.map(\.service))
        for profile in candidates where areChosen || !services.isDisjoint(with: profile.services) {
            try add(profile, table: table)
        }
        guard !streams.isEmpty || !controls.isEmpty else {
            let found = services.map(\.description).sorted().joined(separator: ", ")
            throw LinkFault(
                .profileMismatch,
                "no profile fits its services (\(found)); add a profile, or see `gattherd profile list`",
                isPermanent: true
            )
        }
    }

    private mutating func add(_ profile: any Profile, table: [RemoteCharacteristic]) throws(LinkFault) {
        profiles.append(profile)
        for (index, wanted) in profile.characteristics.enumerated() {
            let remote = table.first { candidate in
                candidate.uuid == wanted.uuid && fits(candidate.service, wanted.service, profile)
                    && !streams.contains { $0.remote.handle == candidate.handle }
            }
            if let remote {
                streams.append(Stream(profile: profile, index: index, remote: remote))
            } else if wanted.isRequired, !table.contains(where: { $0.uuid == wanted.uuid }) {
                throw LinkFault(
                    .profileMismatch,
                    "profile \(profile.name) requires characteristic \(wanted.uuid), which the device does not have",
                    isPermanent: true
                )
            }
        }
        for (index, wanted) in profile.controls.enumerated() {
            let remote = table.first { $0.uuid == wanted.characteristic && fits($0.service, wanted.service, profile) }
            let isTaken = controls.contains { $0.descriptor.name == wanted.name }
            if let remote, !isTaken { controls.append(Control(profile: profile, index: index, remote: remote)) }
        }
    }

    private func fits(_ found: BluetoothUUID, _ wanted: BluetoothUUID?, _ profile: any Profile) -> Bool {
        if let wanted { found == wanted } else { profile.services.isEmpty || profile.services.contains(found) }
    }
}
