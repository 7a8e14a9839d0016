import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdModel

/// Reads the descriptors of characteristics that no profile serves, to make streams of them.
struct DescriptorReader: Sendable {
    let link: ServedLink

    /// The maximum number of described characteristics, and the most descriptor reads: the GATT table of a peripheral
    /// must not keep a session busy forever.
    private static let (maximumDescribed, maximumReads) = (32, 128)

    /// Adds streams for characteristics that no profile serves and that their descriptors explain.
    ///
    /// Devices with chosen profiles are left as they are.
    func describe(_ plan: ProfileAssignment) async throws(LinkFault) -> ProfileAssignment {
        guard let describe = link.context.describe, link.device.profileNames == nil else { return plan }
        var described: [DescribedCharacteristic] = []
        var reads = 0
        for (remote, descriptors) in candidates(
            try await link.services(timeout: link.context.resolveTimeout),
            beyond: plan
        ) {
            let wanted = descriptors.count { $0.uuid == 0x2904 } + 1
            guard described.count < Self.maximumDescribed, reads + wanted <= Self.maximumReads else { break }
            reads += wanted
            if let one = try await description(of: remote, descriptors) { described.append(one) }
        }
        guard let made = describe(described, plan.streamNames) else { return plan }
        record(made.remarks)
        guard link.context.catalogue.admit(made.profile.characteristics, describedBy: link.device.name) else {
            let limit = StreamCatalogue.maximumDescribed
            record(["it has described more than \(limit) different streams; further ones need a restart of gattherd"])
            return plan
        }
        var plan = plan
        try plan.add(made.profile)
        return plan
    }

    /// Returns the characteristics without a profile that have a Characteristic Presentation Format, with their
    /// descriptors.
    private func candidates(
        _ services: [RemoteService],
        beyond plan: ProfileAssignment
    ) -> [(RemoteCharacteristic, [RemoteDescriptor])] {
        let served = plan.servedHandles
        var found: [(RemoteCharacteristic, [RemoteDescriptor])] = []
        for service in services where service.uuid != 0x1800 && service.uuid != 0x1801 {
            let descriptors = Dictionary(grouping: service.descriptors, by: \.characteristic.handle)
            for remote in service.characteristics where !served.contains(remote.handle) {
                let own = descriptors[remote.handle] ?? []
                if own.contains(where: { $0.uuid == 0x2904 }) { found.append((remote, own)) }
            }
        }
        return found
    }

    /// Returns the description in a characteristic's descriptors; `nil` if they have no format or are not readable.
    private func description(
        of remote: RemoteCharacteristic,
        _ descriptors: [RemoteDescriptor]
    ) async throws(LinkFault) -> DescribedCharacteristic? {
        var formats: [[UInt8]] = []
        for descriptor in descriptors where descriptor.uuid == 0x2904 {
            guard let octets = try await read(descriptor) else { return nil }
            formats.append(octets)
        }
        guard !formats.isEmpty else { return nil }
        let userDescription = descriptors.first { $0.uuid == 0x2901 }
        var words: [UInt8]?
        if let userDescription { words = try await read(userDescription) }
        var described = DescribedCharacteristic(
            service: remote.service,
            uuid: remote.uuid,
            description: words,
            formats: formats,
            isNotifying: !remote.properties.isDisjoint(with: [.notify, .indicate]),
            isReadable: remote.properties.contains(.read)
        )
        described.handle = remote.handle
        return described
    }

    private func read(_ descriptor: RemoteDescriptor) async throws(LinkFault) -> [UInt8]? {
        do throws(BluetoothError) {
            return try await link.central.read(descriptor)
        } catch {
            guard error.isAboutAttribute else { throw LinkFault(error, while: "reading a descriptor") }
            return nil
        }
    }

    private func record(_ remarks: [String]) {
        for remark in remarks {
            link.log(.warning, "a descriptor is invalid", [.init("detail", remark)])
            link.context.recorder.record(device: link.device.name, kind: "descriptor", ["detail": .text(remark)])
        }
    }
}
