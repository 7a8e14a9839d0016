import GattherdBluetooth
import GattherdGATT
import GattherdModel
import Testing

@testable import GattherdDaemon

/// Sensors whose advertisements fit several profiles or frames.
struct SharedAdvertisementTests {
    private static let service = AdvertisementSource.serviceData(0xFCD2)
    private static let company = AdvertisementSource.manufacturer(0x0969)
    private static let address = BluetoothAddress(value: 0xC0FF_EE00_0001)

    private static func frame(
        _ source: SourcePattern = .serviceData(0xFCD2),
        _ stream: String = "level",
        length: Int? = nil
    ) -> AdvertisementDescriptor {
        var frame = AdvertisementDescriptor(source: source, stream: stream, metrics: [MetricDescriptor(name: "octet")])
        frame.length = length.map { $0...$0 }
        return frame
    }

    private static func profile(_ name: String, _ frames: AdvertisementDescriptor...) -> OctetProfile {
        var profile = OctetProfile(name, service: 0xAAAA, characteristic: 0xBBBB)
        profile.advertisements = frames
        return profile
    }

    private static func sensor(_ profiles: OctetProfile..., names: [String]? = nil) throws -> Sensor {
        let device = SupervisedDevice(
            name: "tag",
            address: address,
            profileNames: names ?? profiles.map(\.name),
            listening: .init(silence: nil)
        )
        let sensor = Sensor(device, profiles, makeDecoderID: { 1 }, describe: { _ in })
        return try #require(sensor)
    }

    /// Returns `profile/stream bytes` for each payload of an advertisement.
    private static func heard(
        _ frames: (source: AdvertisementSource, octets: [UInt8])...,
        by sensor: Sensor,
        name: String? = "Tag"
    ) -> [String] {
        let id = PeripheralID(adapter: BluetoothAddress(value: 1), address: address)
        let parts = frames.map { HeardAdvertisement.Frame($0.source, $0.octets) }
        let advertisement = HeardAdvertisement(peripheral: id, name: name, rssi: -70, frames: parts)
        var presence = SensorPresence()
        return presence.record(advertisement, of: sensor, now: .now).map { heard in
            "\(heard.binding.stream.profile)/\(heard.binding.stream.stream) \(heard.octets)"
        }
    }

    // MARK: - Several profiles

    @Test(arguments: [(["one", "two"], ["one/level [5]"]), (["two", "one"], ["two/level [5]"])])
    func `data that two profiles decode is for the first in the device's order`(
        names: [String],
        heard: [String]
    ) throws {
        let (one, two) = (Self.profile("one", Self.frame()), Self.profile("two", Self.frame()))
        let sensor = try Self.sensor(one, two, names: names)
        #expect(Self.heard((Self.service, [5]), by: sensor) == heard)
    }

    @Test func `a profile gets the data that no earlier one decodes`() throws {
        let short = Self.profile("short", Self.frame(length: 1))
        let long = Self.profile("long", Self.frame(length: 2), Self.frame(.manufacturer(0x0969), "other"))
        let sensor = try Self.sensor(short, long)
        #expect(Self.heard((Self.service, [5]), by: sensor) == ["short/level [5]"])
        #expect(Self.heard((Self.service, [5, 6]), by: sensor) == ["long/level_2 [5, 6]"])
        #expect(
            Self.heard((Self.service, [5]), (Self.company, [1]), by: sensor) == ["short/level [5]", "long/other [1]"]
        )
        #expect(Self.heard((Self.service, [5, 6, 7]), by: sensor) == ["short/level [5, 6, 7]"])
    }

    @Test func `streams of several profiles with one name are numbered`() throws {
        let (one, three) = (Self.profile("one", Self.frame()), Self.profile("three", Self.frame()))
        let two = Self.profile("two", Self.frame(), Self.frame(.manufacturer(0x0969)))
        let sensor = try Self.sensor(one, two, three)
        let streams = sensor.bindings.values.map { "\($0.stream.profile)/\($0.stream.stream)" }
        #expect(streams.sorted() == ["one/level", "three/level_3", "two/level_2", "two/level_2"])
    }

    // MARK: - Joined frames

    /// Returns a frame of two parts, with its length as name of the stream.
    private static func joined(_ length: Int, names: [String] = []) -> AdvertisementDescriptor {
        var frame = frame(.serviceData(0xFCD2), "of_\(length)", length: length)
        frame.before = [AdvertisementPart(source: .manufacturer(0x0969), length: 1)]
        frame.names = names.map { NamePattern($0) }
        return frame
    }

    @Test(
        arguments: [
            ([5], ["one/of_2 [1, 5]"]), ([5, 6], ["one/of_3 [1, 5, 6]"]), ([5, 6, 7], ["one/of_2 [1, 5, 6, 7]"]),
        ] as [([UInt8], [String])]
    )
    func `of joined frames that begin alike, the one with the right length is used`(
        octets: [UInt8],
        heard: [String]
    ) throws {
        let sensor = try Self.sensor(Self.profile("one", Self.joined(2), Self.joined(3)))
        #expect(Self.heard((Self.service, octets), (Self.company, [1]), by: sensor) == heard)
    }

    @Test func `joined frames that only the name distinguishes wait for the name`() throws {
        var (lamp, plug) = (Self.joined(2, names: ["Lamp"]), Self.joined(2, names: ["Plug"]))
        (lamp.stream, plug.stream) = ("lamp", "plug")
        let sensor = try Self.sensor(Self.profile("one", lamp, plug))
        let told = [nil, "Plug", "Lamp"].map {
            Self.heard((Self.service, [5]), (Self.company, [1]), by: sensor, name: $0)
        }
        #expect(told == [[], ["one/plug [1, 5]"], ["one/lamp [1, 5]"]])
    }

    @Test(arguments: [(["one", "two"], ["one/of_2 [1, 5]"]), (["two", "one"], ["two/of_2 [1, 5]"])])
    func `a joined frame does not wait for a name because of another profile`(
        names: [String],
        heard: [String]
    ) throws {
        let one = Self.profile("one", Self.joined(2, names: ["Lamp"]))
        let sensor = try Self.sensor(one, Self.profile("two", Self.joined(2)), names: names)
        #expect(Self.heard((Self.service, [5]), (Self.company, [1]), by: sensor, name: nil) == heard)
    }

    @Test func `joined frames with other first parts are all decoded`() throws {
        var other = Self.joined(3)
        other.before = [AdvertisementPart(source: .manufacturer(0x0968), length: 1)]
        let sensor = try Self.sensor(Self.profile("one", Self.joined(2), other))
        let heard = Self.heard(
            (Self.service, [5, 6]),
            (Self.company, [1]),
            (.manufacturer(0x0968), [2]),
            by: sensor
        )
        #expect(heard == ["one/of_2 [1, 5, 6]", "one/of_3 [2, 5, 6]"])
    }
}
