import GattherdGATT

/// Which attribute handles a peripheral's services have.
struct GATTLayout: Hashable, Sendable {
    struct Service: Hashable, Sendable {
        let handle: UInt16
        /// The place in the scenario.
        let index: Int
        let characteristics: [Characteristic]
    }

    struct Characteristic: Hashable, Sendable {
        /// Of the declaration; the value's is the next.
        let handle: UInt16
        /// The place among the characteristics of all services of the scenario.
        let index: Int
        let descriptors: [UInt16]
    }

    let services: [Service]

    /// Numbers the services from `first` on and leaves out those that are `hidden`; where `keepsPlaces`, the handles of
    /// the hidden ones stay free.
    init(
        _ specs: [ServiceSpec],
        from first: UInt16,
        hiding hidden: Set<BluetoothUUID> = [],
        keepsPlaces: Bool = false
    ) {
        var next = first
        var characteristic = 0
        var services: [Service] = []
        for (index, spec) in specs.enumerated() {
            let start = characteristic
            characteristic += spec.characteristics.count
            guard keepsPlaces || !hidden.contains(spec.uuid) else { continue }
            let handle = Self.take(1, from: &next)
            let characteristics = spec.characteristics.enumerated().map { offset, spec in
                let declaration = Self.take(2, from: &next)
                let descriptors = spec.allDescriptors.map { _ in Self.take(1, from: &next) }
                return Characteristic(handle: declaration, index: start + offset, descriptors: descriptors)
            }
            guard !hidden.contains(spec.uuid) else { continue }
            services.append(Service(handle: handle, index: index, characteristics: characteristics))
        }
        self.services = services
    }

    private static func take(_ count: UInt16, from next: inout UInt16) -> UInt16 {
        defer { next &+= count }
        return next
    }
}

extension CharacteristicSpec {
    /// Those of the scenario, and the Client Characteristic Configuration where one can subscribe.
    var allDescriptors: [DescriptorSpec] {
        properties.canSubscribe ? descriptors + [DescriptorSpec(.clientConfiguration, value: [0, 0])] : descriptors
    }
}

extension BluetoothUUID {
    /// Client Characteristic Configuration.
    static let clientConfiguration = BluetoothUUID(0x2902)
    static let batteryService = BluetoothUUID(0x180F)
    static let batteryLevel = BluetoothUUID(0x2A19)
}
