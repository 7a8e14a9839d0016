import GattherdGATT
import GattherdModel
import GattherdSync

/// The configured devices and all profiles.
///
/// A device removed from the configuration stays until its link has ended.
final class ConfiguredDevices: Sendable {
    private struct Shared: Sendable {
        var devices: [String: SupervisedDevice] = [:]
        var names: [BluetoothAddress: String] = [:]
        var profiles: [any Profile]
    }

    private let shared: Locked<Shared>

    init(_ devices: [SupervisedDevice], profiles: [any Profile]) {
        shared = Locked(Shared(profiles: profiles))
        for device in devices { enrol(device) }
    }

    /// All devices, by name.
    var devices: [SupervisedDevice] {
        shared.withLock { $0.devices.values.sorted { $0.name < $1.name } }
    }

    subscript(name: String) -> SupervisedDevice? {
        shared.withLock { $0.devices[name] }
    }

    subscript(address: BluetoothAddress) -> SupervisedDevice? {
        shared.withLock { shared in shared.names[address].flatMap { shared.devices[$0] } }
    }

    /// Returns the profiles that may serve a device, in order of preference.
    func profiles(for device: String) -> [any Profile] {
        shared.withLock { shared in
            let options = shared.devices[device]?.options ?? [:]
            let all = options.isEmpty ? shared.profiles : shared.profiles.map { $0.configured(with: options) }
            guard let names = shared.devices[device]?.profileNames else { return all }
            return names.compactMap { name in all.first { $0.name == name } }
        }
    }

    /// Adds or updates a device; if two devices share an address, the address refers to the first.
    func enrol(_ device: SupervisedDevice) {
        shared.withLock { shared in
            shared.devices[device.name] = device
            if shared.names[device.address] == nil { shared.names[device.address] = device.name }
        }
    }

    func remove(_ device: SupervisedDevice) {
        shared.withLock { shared in
            shared.devices[device.name] = nil
            guard shared.names[device.address] == device.name else { return }
            shared.names[device.address] = shared.devices.values.first { $0.address == device.address }?.name
        }
    }

    /// Replaces the profiles; returns true if they differ from before.
    func setProfiles(_ profiles: [any Profile]) -> Bool {
        shared.withLock { shared in
            defer { shared.profiles = profiles }
            return shared.profiles.map(ProfileIdentity.init) != profiles.map(ProfileIdentity.init)
        }
    }
}
