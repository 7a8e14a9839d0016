import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

struct ProfileSkeletonTests {
    /// The profile of a skeleton's text, which must be right, with tests that pass.
    private func compile(_ characteristics: [SkeletonCharacteristic]) throws -> (profile: any Profile, text: String) {
        let text = ProfileSkeleton(name: "probe", origin: "a probe", characteristics: characteristics).text
        let profile = try DeclarativeText.compile(text)
        #expect(ProfileTools.runVectors(of: profile).compactMap(\.failure) == [], "\(text)")
        return (profile, text)
    }

    private func characteristic(
        _ uuid: BluetoothUUID = 0xFFF1,
        values: [UInt8]...,
        change: (inout SkeletonCharacteristic) -> Void = { _ in }
    ) -> SkeletonCharacteristic {
        var characteristic = SkeletonCharacteristic(service: 0xFFF0, uuid: uuid)
        characteristic.notifies = true
        characteristic.values = values
        change(&characteristic)
        return characteristic
    }

    @Test(
        arguments: [
            ([[0x2A]], "u8"), ([[0x2A, 1]], "u16le"), ([[1, 2, 3, 4]], "u32le"), ([[1, 2, 3]], "bytes"),
            ([[1], [1, 2]], "bytes"), ([], "bytes"), ([[]], "bytes"), ([Array("v1.0".utf8)], "utf8"),
            ([Array("abc".utf8), Array("abcd".utf8)], "utf8"),
        ] as [([[UInt8]], String)]
    )
    func `the type of an unknown value is guessed from its octets`(values: [[UInt8]], type: String) throws {
        let (_, text) = try compile([characteristic { $0.values = values }])
        #expect(text.contains("- {metric: c_fff1, type: \(type)}"))
    }

    @Test func `a presentation format gives type, scale and unit`() throws {
        let (profile, text) = try compile([
            characteristic(values: [0x2F, 0x01]) { found in
                found.formats = [[0x0E, 0xFE, 0x2F, 0x27, 0x01, 0x00, 0x00]]
                found.description = "Soil temp"
            }
        ])
        #expect(text.contains(#"- {metric: soil_temp, type: i16le, scale: 1e-2, unit: "°C"}"#))
        #expect(text.contains(#"{hex: "2F 01", expect: {soil_temp: 3.03}}"#))
        #expect(profile.characteristics.map(\.stream) == ["soil_temp"])
    }

    @Test func `a value that contradicts its format becomes a reject test`() throws {
        let (_, text) = try compile([
            characteristic(values: [0x2F]) { $0.formats = [[0x0E, 0xFE, 0x2F, 0x27, 0x01, 0x00, 0x00]] }
        ])
        #expect(text.contains(#"{hex: "2F", reject: true}"#))
    }

    @Test func `names from a device are escaped and unique`() throws {
        let nasty = ["x\nprofile: evil\n", "\u{2028}a\u{85}b", "\"}, {", "seq", "availability", "", "x"]
        let (profile, _) = try compile(
            nasty.enumerated().map { index, text in
                characteristic(BluetoothUUID(UInt16(0xFFF0 + index)), values: [1]) { $0.description = text }
            }
        )
        #expect(profile.name == "probe")
        #expect(Set(profile.characteristics.map(\.stream)).count == nasty.count)
    }

    @Test func `each stream of a Swift package has a function and metrics of its own`() throws {
        let streams = ["Temp", "Temp", "Temp2", "Name", "Stream name"]
        let found = streams.enumerated().map { index, text in
            characteristic(BluetoothUUID(UInt16(0xFFF0 + index)), values: [1]) { $0.description = text }
        }
        let skeleton = SwiftSkeleton(ProfileSkeleton(name: "probe", origin: "a probe", characteristics: found))
        let source = skeleton.files(gattherd: "/gattherd").map(\.text).joined()
        let functions = source.matches(of: /static func (\w+)\(_ payload/).map { String($0.1) }
        #expect(functions == ["temp", "temp2", "temp2_2", "streamName", "streamName_2"])
        let metrics = source.matches(of: /enum (\w+): Int, MetricSet/).map { String($0.1) }
        #expect(metrics.count == streams.count && Set(metrics).count == streams.count)
        for function in functions { #expect(source.contains("decode: \(function)),")) }
    }

    @Test(arguments: [true, false])
    func `a characteristic that sent nothing may answer requests`(isSilent: Bool) throws {
        let values: [[UInt8]] = isSilent ? [] : [[1]]
        let (profile, text) = try compile([
            characteristic { $0.values = values },
            characteristic(0xFFF2) { ($0.notifies, $0.isWritable) = (false, true) },
        ])
        #expect(text.contains(#"# poll: {every: 30s, uuid: fff2, write: "01"}"#) == isSilent)
        #expect(profile.characteristics[0].poll == nil)
    }

    @Test func `write-only characteristics become controls, commented out beside streams`() throws {
        let written = characteristic {
            $0.notifies = false
            $0.isWritable = true
            $0.isCommand = true
        }
        let (alone, _) = try compile([written])
        #expect(alone.controls.map(\.name) == ["c_fff1"])
        #expect(alone.controls.map(\.isAcknowledged) == [false])
        let (beside, text) = try compile([characteristic(0xFFF2, values: [1]), written])
        #expect(beside.controls.isEmpty)
        #expect(text.contains("#   - {name: c_fff1, uuid: fff1, type: u8, response: false}"))
    }

    @Test func `the same characteristic of two services gives two streams`() throws {
        var other = characteristic(values: [2])
        other.service = 0xFFE0
        let (profile, _) = try compile([characteristic(values: [1]), other])
        #expect(profile.services == [0xFFF0, 0xFFE0])
        #expect(profile.characteristics.map(\.service) == [0xFFF0, 0xFFE0])
        #expect(profile.characteristics.map(\.stream) == ["c_fff1", "c_fff1_2"])
    }

    @Test func `the skeleton of any device is valid and passes its tests`() throws {
        var random = SplitMix(state: 7)
        for _ in 0..<60 {
            let found = (0..<Int.random(in: 1...6, using: &random)).map { index in
                var found = SkeletonCharacteristic(service: 0x181A, uuid: BluetoothUUID(UInt16(0x2A60 + index)))
                found.isReadable = Bool.random(using: &random)
                found.indicates = Bool.random(using: &random)
                found.isWritable = true
                found.values = (0..<3).map { _ in random.payload(atMost: 9) }
                found.formats = (0..<Int.random(in: 0...2, using: &random)).map { _ in
                    [UInt8.random(in: 0...30, using: &random), 0xFE] + [0x2F, 0x27, 1, 0, 0]
                }
                found.description = String(decoding: random.payload(atMost: 12), as: UTF8.self)
                found.remarks = [found.description ?? ""]
                return found
            }
            _ = try compile(found)
        }
    }

    @Test func `a skeleton without a device is valid`() throws {
        let (profile, _) = try compile(ProfileTools.exampleCharacteristics)
        #expect(profile.services == [0xFFF0])
    }
}
