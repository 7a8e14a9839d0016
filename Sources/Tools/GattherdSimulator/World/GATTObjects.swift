/// The GATT objects of a device, as discovered at its last connection.
struct GATTObjects: Sendable {
    struct Service: Sendable {
        let path: String
        let index: Int
    }

    struct Characteristic: Sendable {
        let path: String
        let servicePath: String
        var descriptors: [Descriptor]
        /// Known after a read or a notification.
        var value: [UInt8]?
        /// The clients that called `StartNotify`; they stay over a drop.
        var sessions: Set<String> = []
        var isNotifying = false
        /// From the answer to `AcquireNotify` on.
        var notifications: Acquisition?
        /// From the call of `AcquireNotify` on.
        var isAcquired = false
        var writes: Acquisition?
    }

    /// A socket that a client acquired.
    struct Acquisition: Hashable, Sendable {
        let socket: SocketID
        let client: String
    }

    struct Descriptor: Sendable {
        let path: String
        var value: [UInt8]?
    }

    /// The peripheral's ``SimulatedPeripheral/layoutVersion``.
    let version: Int
    let services: [Service]
    /// By their place in the scenario.
    var characteristics: [Int: Characteristic]

    init(_ layout: GATTLayout, version: Int, under device: String) {
        self.version = version
        services = layout.services.map { Service(path: Self.path(device, "service", $0.handle), index: $0.index) }
        characteristics = [:]
        for service in layout.services {
            let servicePath = Self.path(device, "service", service.handle)
            for characteristic in service.characteristics {
                let path = Self.path(servicePath, "char", characteristic.handle)
                characteristics[characteristic.index] = Characteristic(
                    path: path,
                    servicePath: servicePath,
                    descriptors: characteristic.descriptors.map { Descriptor(path: Self.path(path, "desc", $0)) }
                )
            }
        }
    }

    /// The paths of the services and characteristics.
    var paths: Set<String> { Set(services.map(\.path) + characteristics.values.map(\.path)) }

    /// Takes over the characteristics of an earlier table that are in the same place.
    mutating func keep(_ earlier: GATTObjects) {
        for (index, characteristic) in earlier.characteristics where characteristics[index]?.path == characteristic.path
        {
            characteristics[index] = characteristic
        }
    }

    /// Those of one service by their place in the scenario, in the order of their handles.
    func characteristics(of service: Service) -> [(key: Int, value: Characteristic)] {
        characteristics.filter { $0.value.servicePath == service.path }.sorted { $0.value.path < $1.value.path }
    }

    private static func path(_ parent: String, _ kind: String, _ handle: UInt16) -> String {
        let digits = String(handle, radix: 16)
        return "\(parent)/\(kind)\(String(repeating: "0", count: 4 - digits.count))\(digits)"
    }
}
