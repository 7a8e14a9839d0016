import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

/// This package's own plugins, as the files that are installed.
struct BuiltPluginTests {
    private let registry: ProfileRegistry

    init() throws {
        registry = try ProfileRegistry.load(
            paths: [try SharedLibrary.product("HeartRate"), try SharedLibrary.product("NumberService")]
        )
    }

    @Test func `both plugins are loaded`() {
        #expect(registry.refusals.isEmpty)
        #expect(registry.profiles.map(\.name) == ["heart-rate", "number-service"])
    }

    @Test func `both plugins have tests, and all pass`() throws {
        for (name, count) in [("heart-rate", 14), ("number-service", 3)] {
            let results = ProfileTools.runVectors(of: try #require(registry[name]))
            #expect(results.count >= count)
            #expect(results.compactMap(\.failure) == [])
        }
    }

    @Test func `a heart rate is explained by the bytes on which it depends`() throws {
        let profile = try #require(registry["heart-rate"])
        let explained = SampleDependence([[0x16, 0x48, 0x00, 0x04, 0x00]], stream: 0, of: profile)
        #expect(explained.rejection != nil)
        let whole = SampleDependence([[0x16, 0x48, 0x00, 0x04]], stream: 0, of: profile)
        #expect(whole.rows.map(\.sample.metric.name) == ["heart_rate", "sensor_contact", "rr_interval"])
        #expect(whole.rows.map(\.bytes) == [[1], [0], [2, 3]])
        #expect(whole.deciding == [0] && whole.unused == [])
    }

    @Test func `the heart rate plugin describes its streams`() throws {
        let profile = try #require(registry["heart-rate"])
        #expect(profile.services == [0x180D])
        #expect(profile.characteristics.map(\.stream) == ["heart_rate", "body_sensor_location", "battery"])
        #expect(profile.characteristics.map(\.subscription) == [.notify, .none, .notify])
        #expect(profile.characteristics.map(\.isReadAtConnect) == [false, true, true])
        #expect(profile.characteristics.map(\.isRequired) == [true, false, false])
        #expect(
            profile.characteristics[0].metrics == [
                MetricDescriptor(name: "heart_rate", unit: "bpm"),
                MetricDescriptor(name: "sensor_contact", kind: .state, domain: .boolean),
                MetricDescriptor(name: "energy_expended", unit: "kJ", kind: .counter),
                MetricDescriptor(name: "rr_interval", unit: "s", isRepeated: true),
            ]
        )
        #expect(try profile.encode(control: 0, value: .trigger) == [0x01])
    }

    @Test func `the number plugin has a stream and a throttled control`() throws {
        let profile = try #require(registry["number-service"])
        let number = BluetoothUUID(high: 0x7a4b_0001_999f_4717, low: 0xb63a_066e_0697_1f59)
        #expect(
            profile.controls == [
                ControlDescriptor(
                    name: "number",
                    kind: .integer(0...255),
                    characteristic: number,
                    throttle: .milliseconds(100),
                    echo: "number"
                )
            ]
        )
        #expect(try profile.encode(control: 0, value: .integer(255)) == [0xFF])
        var samples: [Sample] = []
        try profile.makeDecoder().decode([0x7F].span, characteristic: 0, into: &samples)
        #expect(samples == [Sample(metric: 0, value: .integer(127)), Sample(metric: 1, value: .real(0.498039))])
    }
}
