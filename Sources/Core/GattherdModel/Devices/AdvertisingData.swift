package import GattherdGATT

/// The AD structures of an advertisement or a scan response: Core Specification Supplement, Part A, "Data Types".
package struct AdvertisingData: Hashable, Sendable {
    /// One structure: its length is that of the type and the contents.
    package struct Structure: Hashable, Sendable {
        package let type: UInt8
        package let contents: [UInt8]

        package init(type: UInt8, contents: [UInt8]) {
            (self.type, self.contents) = (type, contents)
        }
    }

    /// The maximum number of bytes of a structure's contents.
    private static let longest = 254

    package let structures: [Structure]
    /// The reason why the last bytes are not a structure; `nil` if all bytes belong to structures.
    package let problem: String?

    /// Parses bytes as bluetoothd does: structures before a wrong length are used.
    ///
    /// A length of 0 ends the structures; the rest must be zeros.
    package init(_ octets: some Collection<UInt8>) {
        var rest = Array(octets)[...]
        var structures: [Structure] = []
        var problem: String?
        while let length = rest.first, length > 0, problem == nil {
            guard rest.count > Int(length) else {
                problem =
                    "the structure at byte \(rest.startIndex) has a length of \(length), but only "
                    + "\(rest.count - 1) bytes follow"
                break
            }
            let structure = rest.dropFirst().prefix(Int(length))
            structures.append(Structure(type: structure.first ?? 0, contents: Array(structure.dropFirst())))
            rest = rest.dropFirst(Int(length) + 1)
        }
        if problem == nil, let stray = rest.firstIndex(where: { $0 != 0 }) {
            problem = "byte \(stray) comes after the end, which a length of 0 at byte \(rest.startIndex) marks"
        }
        (self.structures, self.problem) = (structures, problem)
    }

    /// Creates the structures of an advertisement from its values.
    package init(
        name: String? = nil,
        services: [BluetoothUUID] = [],
        frames: [(source: AdvertisementSource, octets: [UInt8])]
    ) {
        var structures = [(4, 0x05), (2, 0x03), (16, 0x07)].compactMap { width, type -> Structure? in
            let octets = services.map(\.shortestOctets).filter { $0.count == width }.flatMap(\.self)
            return octets.isEmpty ? nil : Structure(type: UInt8(type), contents: octets)
        }
        structures += frames.map { Structure($0.source, $0.octets) }
        if let name { structures.append(Structure(type: 0x09, contents: Array(name.utf8.prefix(Self.longest)))) }
        self.structures = structures.filter { $0.contents.count <= Self.longest }
        problem = nil
    }

    /// The bytes on air, without the zeros at the end.
    package var octets: [UInt8] { structures.flatMap(\.octets) }
}

extension AdvertisingData.Structure {
    /// The bytes on air: length, type and contents.
    package var octets: [UInt8] { [UInt8(truncatingIfNeeded: contents.count + 1), type] + contents }

    fileprivate init(_ source: AdvertisementSource, _ octets: [UInt8]) {
        switch source {
        case .manufacturer(let company):
            self.init(type: 0xFF, contents: [UInt8(truncatingIfNeeded: company), UInt8(company >> 8)] + octets)
        case .serviceData(let uuid):
            let identifier = uuid.shortestOctets
            let type: UInt8 = identifier.count == 2 ? 0x16 : identifier.count == 4 ? 0x20 : 0x21
            self.init(type: type, contents: identifier + octets)
        }
    }

    /// The bytes of a company or a service; `nil` for other structures.
    package var frame: (source: AdvertisementSource, octets: [UInt8])? {
        switch type {
        case 0xFF:
            guard contents.count >= 2 else { return nil }
            let company = UInt16(contents[0]) | UInt16(contents[1]) << 8
            return (.manufacturer(company), Array(contents.dropFirst(2)))
        case 0x16, 0x20, 0x21:
            let width = type == 0x16 ? 2 : type == 0x20 ? 4 : 16
            guard let uuid = Self.uuid(contents.prefix(width), width) else { return nil }
            return (.serviceData(uuid), Array(contents.dropFirst(width)))
        default: return nil
        }
    }

    /// The name of the type: Assigned Numbers, "Common Data Types".
    package var typeName: String {
        Self.typeNames[type] ?? "type 0x" + Hexadecimal.text(type, isUppercase: true)
    }

    private static let typeNames: [UInt8: String] = [
        0x01: "flags", 0x02: "some 16-bit services", 0x03: "16-bit services", 0x04: "some 32-bit services",
        0x05: "32-bit services", 0x06: "some 128-bit services", 0x07: "128-bit services", 0x08: "shortened name",
        0x09: "name", 0x0A: "transmit power", 0x12: "connection interval", 0x14: "solicited 16-bit services",
        0x15: "solicited 128-bit services", 0x16: "service data", 0x19: "appearance", 0x1A: "advertising interval",
        0x1B: "device address", 0x1C: "role", 0x1F: "solicited 32-bit services", 0x20: "service data",
        0x21: "service data", 0x24: "URI", 0x31: "encrypted data", 0xFF: "manufacturer data",
    ]

    /// The advertised services.
    package var services: [BluetoothUUID] {
        guard let width = [0x02: 2, 0x03: 2, 0x04: 4, 0x05: 4, 0x06: 16, 0x07: 16][type] else { return [] }
        return stride(from: 0, to: contents.count, by: width).compactMap { start in
            Self.uuid(contents[start...].prefix(width), width)
        }
    }

    /// The local name; `nil` for other structures.
    package var name: String? {
        guard type == 0x08 || type == 0x09 else { return nil }
        return String(decoding: contents.prefix { $0 != 0 }, as: UTF8.self)
    }

    /// Returns a UUID from its little-endian bytes; `nil` if some are missing.
    private static func uuid(_ octets: ArraySlice<UInt8>, _ width: Int) -> BluetoothUUID? {
        guard octets.count == width else { return nil }
        let number = octets.reversed().reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
        guard width == 16 else { return BluetoothUUID(assigned: UInt32(truncatingIfNeeded: number)) }
        return BluetoothUUID(
            high: UInt64(truncatingIfNeeded: number >> 64),
            low: UInt64(truncatingIfNeeded: number)
        )
    }
}

extension AdvertisingData {
    /// The local name, complete if it has one.
    package var name: String? {
        (structures.last { $0.type == 0x09 } ?? structures.last { $0.type == 0x08 })?.name
    }

    package var services: [BluetoothUUID] { structures.flatMap(\.services) }

    /// The data of companies and services; of several structures with one source the last, as in bluetoothd.
    package var frames: [(source: AdvertisementSource, octets: [UInt8])] {
        let all = structures.compactMap(\.frame)
        return all.enumerated().filter { index, frame in
            !all[(index + 1)...].contains { $0.source == frame.source }
        }.map(\.element)
    }

    /// True if several structures have the data of one company or service.
    package var hasRepeatedSource: Bool { frames.count < structures.compactMap(\.frame).count }
}

extension AdvertisedTraits {
    /// Creates the traits of a device that has sent this name and these services, perhaps earlier.
    package init(name: String?, services: [BluetoothUUID], _ data: AdvertisingData) {
        var (companies, parts) = ([UInt16: [UInt8]](), [BluetoothUUID: [UInt8]]())
        for frame in data.frames {
            switch frame.source {
            case .manufacturer(let company): companies[company] = frame.octets
            case .serviceData(let uuid): parts[uuid] = frame.octets
            }
        }
        let others = services.filter { parts[$0] == nil }
        self.init(name: name, services: others, manufacturerData: companies, serviceData: parts)
    }
}
