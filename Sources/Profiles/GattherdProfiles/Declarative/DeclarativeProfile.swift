import GattherdGATT
import GattherdModel

/// A compiled YAML profile.
struct DeclarativeProfile: TestedProfile {
    let name: String
    let title: String
    let services: [BluetoothUUID]
    let isOptIn: Bool
    /// True if another profile of the same name replaces it.
    let isStandIn: Bool
    let origin: String
    var revision = 0
    var models: [ModelDescriptor] = []
    /// The decoders and documents with which its tests were compared.
    var sources: [String] = []
    private(set) var compiled: [CompiledCharacteristic]
    private(set) var characteristics: [CharacteristicDescriptor]
    let controls: [ControlDescriptor]
    /// The tasks, with the names of options in their bytes.
    private let unresolvedTasks: [ConnectionTaskDescriptor]
    /// The downloads, with the names of options in their bytes.
    var unresolvedDownloads: [DownloadDescriptor] = []
    private(set) var frames: [CompiledAdvertisement]
    let advertisements: [AdvertisementDescriptor]
    private var compiledControls: [CompiledControl]
    private let shared: SharedValues
    private let advertised = AdvertisedStreams()
    /// A device's settings from the configuration.
    private var settings: [String: Int64] = [:]

    init(
        name: String,
        title: String,
        services: [BluetoothUUID],
        isOptIn: Bool,
        isStandIn: Bool,
        origin: String,
        shared: SharedValues,
        compiled: [CompiledCharacteristic],
        compiledControls: [CompiledControl],
        tasks: [ConnectionTaskDescriptor]
    ) {
        self.name = name
        self.title = title
        self.services = services
        self.isOptIn = isOptIn
        self.isStandIn = isStandIn
        self.origin = origin
        self.shared = shared
        self.compiled = compiled
        characteristics = []
        controls = compiledControls.map(\.descriptor)
        unresolvedTasks = tasks
        self.compiledControls = compiledControls
        (frames, advertisements) = ([], [])
        resolveRequests()
    }

    /// Creates a profile of advertisements.
    init(
        name: String,
        title: String,
        isStandIn: Bool,
        origin: String,
        options: SharedValues,
        frames: [CompiledAdvertisement]
    ) {
        self.name = name
        self.title = title
        self.isStandIn = isStandIn
        self.origin = origin
        self.frames = frames
        shared = options
        advertisements = frames.map(\.descriptor)
        (services, isOptIn, unresolvedTasks) = ([], true, [])
        (compiled, characteristics, compiledControls, controls) = ([], [], [], [])
    }

    func makeDecoder() -> any PayloadDecoder {
        isForAdvertisements
            ? AdvertisementDecoder(frames, nil, profile: name, shared: sharedAtStart)
            : DeclarativeDecoder(compiled.map(\.program), shared: sharedAtStart)
    }

    var options: [ProfileOption] { shared.options }

    var tasks: [ConnectionTaskDescriptor] { unresolvedTasks.map { $0.resolved(option) } }

    var downloads: [DownloadDescriptor] { unresolvedDownloads.map { $0.resolved(option) } }

    /// Returns the value of an option.
    private func option(_ name: String) -> Int64? {
        shared.options.firstIndex { $0.name == name }.map { sharedAtStart[$0] }
    }

    /// Puts the values of options into the requests of polled characteristics.
    private mutating func resolveRequests() {
        characteristics = compiled.map { $0.resolved(option).descriptor }
    }

    /// The shared values at the start of a connection.
    var sharedAtStart: [Int64] { shared.initial(with: settings) }

    /// Returns the profile with a device's settings; a change of settings changes the revision.
    func configured(with options: [String: Int64]) -> any Profile {
        let known = options.filter { option in shared.options.contains { $0.name == option.key } }
        guard known != settings else { return self }
        var profile = self
        profile.settings = known
        profile.resolveRequests()
        profile.revision = revision ^ known.hashValue
        return profile
    }

    func makeDecoder(for sender: Sender) -> any PayloadDecoder {
        isForAdvertisements
            ? AdvertisementDecoder(frames, sender, profile: name, shared: sharedAtStart)
            : makeDecoder()
    }

    func stream(ofAdvertisement index: Int, from device: String) -> StreamDefinition {
        advertised.stream(index, of: self, from: device)
    }

    /// The profile without its tests and explanations.
    var forDecoding: DeclarativeProfile {
        var stripped = self
        (stripped.compiled, stripped.frames) = (compiled.map(\.forDecoding), frames.map(\.forDecoding))
        for index in stripped.compiledControls.indices { stripped.compiledControls[index].vectors = [] }
        return stripped
    }

    /// The tests of each stream, in the order of the streams.
    var vectors: [[TestVector]] { isForAdvertisements ? frames.map(\.vectors) : compiled.map(\.vectors) }

    /// The tests of each control, in the order of the controls.
    var controlVectors: [[ControlVector]] { compiledControls.map(\.vectors) }

    func encode(control: Int, value: ControlValue) throws(ControlError) -> [UInt8] {
        guard controls.indices.contains(control) else { throw .noSuchControl("number \(control)") }
        let kind = controls[control].kind
        let value = try kind.accept(value)
        let encoded = compiledControls[control].encoding.octets(for: value, kind)
        guard let octets = encoded.flatMap(compiledControls[control].frame.octets) else {
            throw .invalidValue(value.description, expected: kind.expectation)
        }
        return octets
    }
}

/// The decoder of one connection.
final class DeclarativeDecoder: PayloadDecoder {
    private let programs: [DecodeProgram]
    private var memories: [DecodeMemory]
    private var shared: [Int64]

    init(_ programs: [DecodeProgram], shared: [Int64] = []) {
        self.programs = programs
        self.shared = shared
        memories = programs.map { DecodeMemory(for: $0) }
    }

    func decode(
        _ payload: Span<UInt8>,
        characteristic: Int,
        into samples: inout [Sample]
    ) throws(PayloadError) {
        guard programs.indices.contains(characteristic) else {
            throw .invalid(reason: "the profile has no characteristic \(characteristic)")
        }
        memories[characteristic].shared = shared
        try programs[characteristic].decode(payload, &memories[characteristic], into: &samples)
        for share in programs[characteristic].shares where memories[characteristic].isPresent[share.register] {
            shared[share.shared] = memories[characteristic].registers[share.register]
        }
    }
}
