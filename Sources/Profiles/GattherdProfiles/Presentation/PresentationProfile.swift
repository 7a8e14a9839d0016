package import GattherdGATT
package import GattherdModel

/// A profile made from a peripheral's Presentation Format descriptors, for characteristics without a profile.
package struct PresentationProfile: Profile {
    package let name = "presentation-format"
    package let title = "What the device's descriptors say"
    package let services: [BluetoothUUID] = []
    package let characteristics: [CharacteristicDescriptor]
    package let controls: [ControlDescriptor] = []
    package let origin = "the device"
    /// The hash of the descriptors and of the names made from them, so that another description is another version.
    package let revision: Int
    private let programs: [DecodeProgram]

    /// Creates a profile of all self-describing characteristics; `nil` if there are none.
    ///
    /// - Parameters:
    ///   - described: The characteristics without a profile.
    ///   - taken: The device's existing stream names.
    /// - Returns: The profile, and problems with the descriptors.
    package static func make(of described: [DescribedCharacteristic], taken: Set<String>) -> SelfDescription? {
        var maker = PresentationMaker(taken: taken)
        for characteristic in described { maker.add(characteristic) }
        guard !maker.characteristics.isEmpty else { return nil }
        let profile = PresentationProfile(described, maker)
        return SelfDescription(profile: profile, remarks: maker.remarks)
    }

    /// Returns true if a device can give a stream or a metric this name by its descriptors.
    package static func canName(_ name: String) -> Bool {
        let reserved = ProfileRules.reservedStreams + ProfileRules.reservedMetrics
        return ProfileRules.isIdentifier(name) && !reserved.contains(name)
    }

    private init(_ described: [DescribedCharacteristic], _ maker: PresentationMaker) {
        characteristics = maker.characteristics
        programs = maker.programs
        var hasher = Hasher()
        // The descriptors have what the metrics lack: the width and the exponent of each value.
        hasher.combine(described)
        hasher.combine(characteristics)
        revision = hasher.finalize()
    }

    package func makeDecoder() -> any PayloadDecoder { DeclarativeDecoder(programs) }

    package func encode(control: Int, value: ControlValue) throws(ControlError) -> [UInt8] {
        throw .noSuchControl("number \(control)")
    }
}

/// Builds a profile from descriptors.
struct PresentationMaker {
    private static let pause: Duration = .seconds(60)

    private(set) var characteristics: [CharacteristicDescriptor] = []
    private(set) var programs: [DecodeProgram] = []
    private(set) var remarks: [String] = []
    private var taken: Set<String>

    init(taken: Set<String>) {
        self.taken = taken.union(ProfileRules.reservedStreams).union(ProfileRules.reservedMetrics)
    }

    mutating func add(_ described: DescribedCharacteristic) {
        guard described.isNotifying || described.isReadable else { return }
        let formats = described.formats.compactMap { PresentationFormat($0) }
        guard formats.count == described.formats.count, !formats.isEmpty else {
            return remark("has a presentation format that does not exist", described)
        }
        for complaint in formats.flatMap(\.remarks) { remark(complaint, described) }
        guard formats.dropLast().allSatisfy({ $0.width != nil }) else {
            return remark("has a value of open length before another one", described)
        }
        let stream = name(of: described, formats)
        var builder = ProgramBuilder()
        for (format, name) in zip(formats, Self.metrics(of: formats, in: stream)) { builder.add(format, name: name) }
        programs.append(builder.finished(formats))
        var descriptor = CharacteristicDescriptor(
            service: described.service,
            uuid: described.uuid,
            stream: stream,
            metrics: builder.metrics,
            subscription: described.isNotifying ? .notify : .none,
            isReadAtConnect: described.isReadable,
            pollInstead: described.isReadable ? Self.pause : nil
        )
        descriptor.handle = described.handle
        characteristics.append(descriptor)
    }

    /// Returns a name for each value: the stream's, or with several values also the namespace description or the number
    /// of each.
    ///
    /// Devices may describe two values alike; then all are numbered.
    private static func metrics(of formats: [PresentationFormat], in stream: String) -> [String] {
        guard formats.count > 1 else { return [stream] }
        let places = formats.enumerated().map { $1.place ?? "\($0 + 1)" }
        let areDifferent = Set(places).count == places.count
        return places.enumerated().map { "\(stream)_\(areDifferent ? $1 : "\($0 + 1)")" }
    }

    private mutating func remark(_ reason: String, _ described: DescribedCharacteristic) {
        remarks.append("characteristic \(described.uuid): \(reason)")
    }

    /// Returns the stream's name: the User Description, else the assigned name, else the UUID, numbered if in use.
    private mutating func name(of described: DescribedCharacteristic, _ formats: [PresentationFormat]) -> String {
        let words = described.description.map { String(decoding: $0, as: UTF8.self) } ?? ""
        let place = formats.count == 1 ? formats[0].place.map { "_\($0)" } : nil
        return StreamName.make([words], described.uuid, &taken, suffix: place ?? "")
    }
}
