import GattherdGATT
import GattherdModel

/// A profile written in YAML, compiled.
struct DeclarativeProfile: Profile {
    let name: String
    let title: String
    let services: [BluetoothUUID]
    let isOptIn: Bool
    /// Gives way to another profile of the same name.
    let isStandIn: Bool
    let origin: String
    var revision = 0
    let compiled: [CompiledCharacteristic]
    let characteristics: [CharacteristicDescriptor]
    let controls: [ControlDescriptor]
    let tasks: [ConnectionTask]
    let frames: [CompiledAdvertisement]
    let advertisements: [AdvertisementDescriptor]
    private let compiledControls: [CompiledControl]

    init(
        name: String,
        title: String,
        services: [BluetoothUUID],
        isOptIn: Bool,
        isStandIn: Bool,
        origin: String,
        compiled: [CompiledCharacteristic],
        compiledControls: [CompiledControl],
        tasks: [ConnectionTask]
    ) {
        self.name = name
        self.title = title
        self.services = services
        self.isOptIn = isOptIn
        self.isStandIn = isStandIn
        self.origin = origin
        self.compiled = compiled
        characteristics = compiled.map(\.descriptor)
        controls = compiledControls.map(\.descriptor)
        self.tasks = tasks
        self.compiledControls = compiledControls
        (frames, advertisements) = ([], [])
    }

    /// A profile of what devices advertise.
    init(name: String, title: String, isStandIn: Bool, origin: String, frames: [CompiledAdvertisement]) {
        self.name = name
        self.title = title
        self.isStandIn = isStandIn
        self.origin = origin
        self.frames = frames
        advertisements = frames.map(\.descriptor)
        (services, isOptIn, tasks) = ([], true, [])
        (compiled, characteristics, compiledControls, controls) = ([], [], [], [])
    }

    func makeSession() -> any ProfileSession {
        isForAdvertisements ? AdvertisementSession(frames, nil) : DeclarativeSession(compiled.map(\.program))
    }

    func makeSession(for sender: Sender) -> any ProfileSession {
        isForAdvertisements ? AdvertisementSession(frames, sender) : makeSession()
    }

    /// The tests of each stream, in the order of the streams.
    var vectors: [[Vector]] { isForAdvertisements ? frames.map(\.vectors) : compiled.map(\.vectors) }

    func encode(control: Int, value: ControlValue) throws(ControlError) -> [UInt8] {
        guard controls.indices.contains(control) else { throw .noSuchControl("number \(control)") }
        let kind = controls[control].kind
        let value = try kind.accept(value)
        guard let octets = compiledControls[control].encoding.octets(for: value, kind) else {
            throw .invalidValue(value.description, expected: kind.expectation)
        }
        let frame = compiledControls[control].frame
        return frame.prefix + octets + frame.suffix
    }
}

/// The decoder of one connection.
final class DeclarativeSession: ProfileSession {
    private let programs: [DecodeProgram]
    private var memories: [DecodeMemory]

    init(_ programs: [DecodeProgram]) {
        self.programs = programs
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
        try programs[characteristic].run(payload, &memories[characteristic], into: &samples)
    }
}
