import GattherdCapture
import GattherdGATT
import GattherdSync
import GattherdYAML
import Glibc

/// Creates a peripheral of a capture.
struct ReplayReader {
    private let problems: ProblemList

    init(_ problems: ProblemList) {
        self.problems = problems
    }

    /// Gives the peripheral the services, values and pauses of a capture.
    ///
    /// The path is relative to the scenario's folder.
    func read(_ fields: inout MappingFields, _ spec: inout PeripheralSpec) {
        guard let node = fields.node("replay") else {
            return problems.add("'replay' is missing: the file of a capture", at: fields.position)
        }
        guard let path = fields.parsed(node, "a path", { $0 }) else { return }
        let place = path.hasPrefix("/") ? path : problems.folder + path
        guard let octets = Self.contents(of: place) else {
            return problems.add("cannot read '\(place)': \(SystemError.current)", at: node.position)
        }
        do throws(CaptureError) {
            let capture = try Capture(octets, file: path)
            spec.services = capture.header.services.map { ServiceSpec($0, of: capture) }
            spec.advertising.name = capture.header.name
            spec.advertising.services = spec.services.prefix(1).map(\.uuid)
            if spec.address.value == 0 { spec.address = capture.header.address }
        } catch {
            problems.add("this is not a capture: \(error)", at: node.position)
        }
    }

    private static func contents(of path: String) -> [UInt8]? {
        guard let file = unsafe fopen(path, "rb") else { return nil }
        defer { unsafe fclose(file) }
        var octets: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe fread(&chunk, 1, chunk.count, file)
            octets += chunk[..<count]
            guard count > 0 else { return unsafe ferror(file) == 0 ? octets : nil }
        }
    }
}

extension ServiceSpec {
    fileprivate init(_ service: CaptureHeader.Service, of capture: Capture) {
        self.init(service.uuid, service.characteristics.map { CharacteristicSpec($0, in: service.uuid, of: capture) })
    }
}

extension CharacteristicSpec {
    fileprivate init(_ heard: CaptureHeader.Characteristic, in service: BluetoothUUID, of capture: Capture) {
        let properties = CharacteristicProperties.words.filter { heard.properties.contains($0.word) }
        let track = capture.track(of: heard.uuid, in: service)
        self.init(heard.uuid, CharacteristicProperties(properties.map(\.property)), value: track.stored)
        guard let mean = track.pauses.last else { return }
        source = .recorded(Recording(payloads: track.sent, pauses: track.pauses))
        rate = min(max(1 / (mean / .seconds(1)), 0.001), 1000)
    }
}
