import GattherdBluetooth
import GattherdGATT
import GattherdModel
import Testing

@testable import GattherdDaemon

/// One sensor in virtual time.
struct SensorPresenceTests {
    private static let first = AdvertisementSource.serviceData(0xFCD2)
    private static let second = AdvertisementSource.manufacturer(0x0969)
    private static let address = BluetoothAddress(value: 0xC0FF_EE00_0001)
    private let start = SuspendingClock.now

    private static func frame(_ source: SourcePattern, _ stream: String) -> AdvertisementDescriptor {
        AdvertisementDescriptor(source: source, stream: stream, metrics: [MetricDescriptor(name: "octet")])
    }

    private static func sensor(_ frames: [AdvertisementDescriptor], silence: Duration? = nil) throws -> Sensor {
        var profile = OctetProfile("octet", service: 0xAAAA, characteristic: 0xBBBB)
        profile.advertisements = frames
        let device = SupervisedDevice(
            name: "tag",
            address: address,
            profileNames: ["octet"],
            listening: .init(silence: silence)
        )
        let sensor = Sensor(device, [profile], makeDecoderID: { 1 }, describe: { _ in })
        return try #require(sensor)
    }

    /// Records an advertisement some seconds after the start, and returns the payloads of new readings.
    private func record(
        _ frames: [(source: AdvertisementSource, octets: [UInt8])],
        at seconds: Int,
        _ presence: inout SensorPresence,
        _ sensor: Sensor
    ) -> [[UInt8]] {
        let id = PeripheralID(adapter: BluetoothAddress(value: 1), address: Self.address)
        let heard = frames.map { HeardAdvertisement.Frame($0.source, $0.octets) }
        let advertisement = HeardAdvertisement(peripheral: id, name: "Tag", rssi: -70, frames: heard)
        return presence.record(advertisement, of: sensor, now: start + .seconds(seconds)).map(\.octets)
    }

    // MARK: - Silence

    /// A thermometer's frame, and one of a button that sends once in hours.
    private static func frames() -> [AdvertisementDescriptor] {
        var (often, seldom) = (frame(.serviceData(0xFCD2), "often"), frame(.manufacturer(0x0969), "seldom"))
        (often.silence, seldom.silence) = (.seconds(300), .seconds(21_600))
        return [often, seldom]
    }

    private func check(_ presence: inout SensorPresence, _ sensor: Sensor, at seconds: Int) -> SensorPresence.Status {
        presence.check(sensor, now: start + .seconds(seconds))
    }

    @Test func `a sensor is away after the longest silence of its frames`() throws {
        let sensor = try Self.sensor(Self.frames())
        var presence = SensorPresence()
        _ = record([(Self.first, [5])], at: 0, &presence, sensor)
        #expect(check(&presence, sensor, at: 100) == .present(timeLeft: .seconds(200)))
        _ = record([(Self.second, [1])], at: 200, &presence, sensor)
        _ = record([(Self.first, [5])], at: 300, &presence, sensor)
        #expect(check(&presence, sensor, at: 21_899) == .present(timeLeft: .seconds(1)))
        #expect(check(&presence, sensor, at: 21_900) == .away(silence: .seconds(21_600)))
        #expect(presence.isAway)
        _ = record([(Self.first, [5])], at: 30_000, &presence, sensor)
        #expect(check(&presence, sensor, at: 30_300) == .away(silence: .seconds(300)))
    }

    @Test func `the shortest silence counts until a frame of the profiles is heard`() throws {
        let sensor = try Self.sensor(Self.frames())
        var presence = SensorPresence()
        _ = record([(.manufacturer(0x004C), [2])], at: 0, &presence, sensor)
        #expect(check(&presence, sensor, at: 0) == .present(timeLeft: .seconds(300)))
        #expect(check(&presence, sensor, at: 300) == .away(silence: .seconds(300)))
    }

    @Test func `a configured silence replaces that of all frames`() throws {
        let sensor = try Self.sensor(Self.frames(), silence: .seconds(60))
        var presence = SensorPresence()
        _ = record([(Self.second, [1])], at: 0, &presence, sensor)
        #expect(check(&presence, sensor, at: 60) == .away(silence: .seconds(60)))
    }

    // MARK: - Repetitions

    @Test func `the same payload is new again after the renewal, however often it was repeated`() throws {
        let sensor = try Self.sensor([Self.frame(.serviceData(0xFCD2), "often")])
        var presence = SensorPresence()
        let new = stride(from: 0, through: 130, by: 10).filter { seconds in
            !record([(Self.first, [5])], at: seconds, &presence, sensor).isEmpty
        }
        #expect(new == [0, 60, 120])
        #expect(record([(Self.first, [6])], at: 131, &presence, sensor) == [[6]])
        #expect(record([(Self.first, [5])], at: 132, &presence, sensor) == [[5]])
    }

    @Test func `a repetition that ends an absence has the silence of its frame`() throws {
        var (often, seldom) = (Self.frame(.serviceData(0xFCD2), "often"), Self.frame(.manufacturer(0x0969), "seldom"))
        (often.silence, seldom.silence) = (.seconds(10), .seconds(30))
        let sensor = try Self.sensor([often, seldom])
        var presence = SensorPresence()
        _ = record([(Self.second, [1])], at: 0, &presence, sensor)
        #expect(check(&presence, sensor, at: 30) == .away(silence: .seconds(30)))
        #expect(record([(Self.second, [1])], at: 40, &presence, sensor) == [])
        #expect(check(&presence, sensor, at: 50) == .present(timeLeft: .seconds(20)))
    }

    @Test func `other data does not hide the last advertisement that is decoded`() throws {
        let sensor = try Self.sensor([Self.frame(.serviceData(0xFCD2), "often")])
        var presence = SensorPresence()
        let sources = [Self.second, Self.first, Self.second, Self.first, Self.second]
        let last = sources.enumerated().map { seconds, source in
            _ = record([(source, [5])], at: seconds, &presence, sensor)
            return presence.lastAdvertisement?.frames.map(\.source)
        }
        #expect(last == [[Self.second], [Self.first], [Self.first], [Self.first], [Self.first]])
    }

    // MARK: - Joined frames

    /// A frame of two parts; each may be 60 s old.
    private static func joined() throws -> Sensor {
        var frame = frame(.serviceData(0xFCD2), "joined")
        frame.before = [AdvertisementPart(source: .manufacturer(0x0969), length: 1)]
        return try sensor([frame])
    }

    @Test func `a part that was not heard again makes no new readings`() throws {
        let sensor = try Self.joined()
        var presence = SensorPresence()
        #expect(record([(Self.first, [5]), (Self.second, [1])], at: 0, &presence, sensor) == [[1, 5]])
        for seconds in stride(from: 10, through: 3600, by: 10) {
            let new = record([(Self.second, [1])], at: seconds, &presence, sensor)
            #expect(new == (seconds == 60 ? [[1, 5]] : []), "after \(seconds) s")
        }
        #expect(record([(Self.first, [5])], at: 3605, &presence, sensor) == [[1, 5]])
    }

    @Test func `an old part is left out of a reading even if the other part changes`() throws {
        let sensor = try Self.joined()
        var presence = SensorPresence()
        #expect(record([(Self.first, [5])], at: 0, &presence, sensor) == [])
        #expect(record([(Self.second, [1])], at: 60, &presence, sensor) == [[1, 5]])
        #expect(record([(Self.second, [2])], at: 61, &presence, sensor) == [])
        #expect(record([(Self.first, [6])], at: 70, &presence, sensor) == [[2, 6]])
    }

    @Test func `a copy of an advertisement with another strength has nothing new`() throws {
        let sensor = try Self.sensor([Self.frame(.serviceData(0xFCD2), "often")])
        var presence = SensorPresence()
        let id = PeripheralID(adapter: BluetoothAddress(value: 1), address: Self.address)
        var heard = HeardAdvertisement(peripheral: id, rssi: -70, frames: [.init(Self.first, [5])])
        #expect(presence.record(heard, of: sensor, now: start).map(\.octets) == [[5]])
        heard.rssi = -71
        #expect(presence.record(heard, of: sensor, now: start + .seconds(1)).isEmpty)
        let other = heard.with([.init(Self.first, [6])])
        #expect(presence.record(other, of: sensor, now: start + .seconds(2)).map(\.octets) == [[6]])
    }
}
