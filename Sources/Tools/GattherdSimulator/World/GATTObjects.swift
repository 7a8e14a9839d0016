import GattherdDBus
import GattherdGATT

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
        /// The last value that was read or notified.
        var value: [UInt8]?
        /// The clients that called `StartNotify`.
        ///
        /// Sessions survive the link.
        var notifySessions: Set<String> = []
        var isNotifying = false
        /// The socket of `AcquireNotify`, from its reply on.
        var notifySocket: Acquisition?
        /// True from the call of `AcquireNotify` on.
        var isNotifyAcquired = false
        /// True after an `AcquireNotify` that failed and is never answered: the characteristic stays acquired.
        var isNotifyStuck = false
        /// The socket of `AcquireWrite`.
        var writeSocket: Acquisition?

        /// The properties of `GattCharacteristic1`, without the MTU.
        func properties(_ spec: CharacteristicSpec) -> [Property] {
            var properties = [
                Property("UUID", .string(spec.uuid.canonical)),
                Property("Service", .objectPath(servicePath)),
                Property("Value", .bytes(value ?? [])),
                Property("Flags", .strings(spec.properties.flags)),
            ]
            if spec.properties.canSubscribe {
                properties.append(Property("Notifying", .boolean(isNotifying || isNotifyAcquired)))
            }
            if spec.properties.contains(.notify) {
                properties.append(Property("NotifyAcquired", .boolean(isNotifyAcquired)))
            }
            if spec.properties.contains(.writeWithoutResponse) {
                properties.append(Property("WriteAcquired", .boolean(writeSocket != nil)))
            }
            return properties
        }
    }

    /// An acquired socket and its client.
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
    /// The characteristics by their index in the scenario.
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

    /// Keeps the state of characteristics with the same path in an earlier table.
    mutating func keep(_ earlier: GATTObjects) {
        for (index, characteristic) in earlier.characteristics where characteristics[index]?.path == characteristic.path
        {
            characteristics[index] = characteristic
        }
    }

    /// The characteristics of one service by their index in the scenario, in handle order.
    func characteristics(of service: Service) -> [(key: Int, value: Characteristic)] {
        characteristics.filter { $0.value.servicePath == service.path }.sorted { $0.value.path < $1.value.path }
    }

    private static func path(_ parent: String, _ kind: String, _ handle: UInt16) -> String {
        let digits = String(handle, radix: 16)
        return "\(parent)/\(kind)\(String(repeating: "0", count: 4 - digits.count))\(digits)"
    }
}
