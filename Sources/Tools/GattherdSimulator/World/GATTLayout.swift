import GattherdGATT

/// The attribute handles of a peripheral's services.
struct GATTLayout: Hashable, Sendable {
    struct Service: Hashable, Sendable {
        let handle: UInt16
        /// The index in the scenario.
        let index: Int
        let characteristics: [Characteristic]
    }

    struct Characteristic: Hashable, Sendable {
        /// The handle of the declaration.
        ///
        /// The value has the next handle.
        let handle: UInt16
        /// The index among the characteristics of all services in the scenario.
        let index: Int
        let descriptors: [UInt16]
    }

    let services: [Service]

    /// Numbers the services from `first` on, without the `hidden` ones.
    ///
    /// With `keepsPlaces`, the handles of hidden services stay unused.
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
            let handle = Self.allocate(1, from: &next)
            let characteristics = spec.characteristics.enumerated().map { offset, spec in
                let declaration = Self.allocate(2, from: &next)
                let descriptors = spec.allDescriptors.map { _ in Self.allocate(1, from: &next) }
                return Characteristic(handle: declaration, index: start + offset, descriptors: descriptors)
            }
            guard !hidden.contains(spec.uuid) else { continue }
            services.append(Service(handle: handle, index: index, characteristics: characteristics))
        }
        self.services = services
    }

    private static func allocate(_ count: UInt16, from next: inout UInt16) -> UInt16 {
        defer { next &+= count }
        return next
    }
}

extension CharacteristicSpec {
    /// The descriptors of the scenario, and the Client Characteristic Configuration of subscribable characteristics.
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
