import GattherdBluetooth
import GattherdConfig
import GattherdGATT

extension OptionSpec {
    /// For commands that talk to BlueZ themselves.
    static let adapter = OptionSpec.value(
        "adapter",
        "NAME|ADDRESS",
        "the adapter to use, for example hci1 (default: where the daemon has the device, else as configured)"
    )
}

extension Central.AdapterChoice {
    /// The one that is asked for, else where the daemon has the device or last had it, else the device's own, else the
    /// first that the configuration allows, else the first that is on.
    init(_ arguments: Arguments, _ configuration: Configuration?, for device: DeviceSettings? = nil) {
        let configured = device?.adapter?.value ?? configuration?.bluetooth.adapters.first
        if let asked = arguments.value("adapter") {
            self = BluetoothAddress(asked).map { .address($0) } ?? .name(asked)
        } else if let device, let configuration,
            let present = DaemonClient(configuration).adapter(of: device.name.value)
        {
            self = .address(present)
        } else {
            self = configured.map { .address($0) } ?? .automatic
        }
    }
}

extension AdapterChoice {
    fileprivate var first: BluetoothAddress? {
        switch self {
        case .auto: nil
        case .only(let addresses): addresses.first
        }
    }
}

extension DaemonClient {
    /// `nil` when no daemon runs, or it has not connected the device yet.
    fileprivate func adapter(of device: String) -> BluetoothAddress? {
        let status = try? status().devices.first { $0.device == device }
        return status?.adapter.flatMap { BluetoothAddress($0) }
    }
}
