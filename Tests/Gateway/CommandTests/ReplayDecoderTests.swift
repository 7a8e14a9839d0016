import FoundationEssentials
import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

@testable import GattherdCapture
@testable import gattherd

/// Recorded values of a connection, decoded as the daemon does.
struct ReplayDecoderTests {
    private static let profile = """
        contract: 1
        profile: pump
        services: [ffe0]
        characteristics:
          - uuid: ffe1
            stream: pump
            subscribe: notify
            message: {begins: A5, length: {at: 1, type: u8, add: 2}}
            fields: [{skip: 2}, {metric: flow, type: u8}]
        """

    private func value(_ octets: [UInt8]) -> CaptureValue {
        let time = Timestamp(microseconds: 1_750_000_000_000_000)
        return CaptureValue(time: time, service: 0xFFE0, characteristic: 0xFFE1, source: .notify, octets: octets)
    }

    @Test func `an unfinished message at the end of a recording is rejected, and messages inside it decoded`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(Self.profile, to: "pump.yaml")
        var decoder = ReplayDecoder(try ProfileRegistry.load(paths: [path]).profiles)
        #expect(decoder.decode(value([0xA5, 9, 1])).isEmpty)
        #expect(decoder.decode(value([0xA5, 1, 7])).isEmpty)
        let words = decoder.finish().map { ended in
            switch ended.outcome {
            case .decoded(_, _, let samples): "\(samples.map(\.value))"
            case .rejected(_, _, let reason): reason
            case .unknown: "unknown"
            }
        }
        #expect(words == ["incomplete message: 6 of 11 bytes", "\([SampleValue.integer(7)])"])
        #expect(decoder.finish().isEmpty)
    }

    @Test(
        arguments: [
            (1, "temperature_history"), (3, "pressure_history"), (9, "rejected by temperature_history"),
        ] as [(UInt8, String)]
    )
    func `the first stream that accepts a block decodes it`(kind: UInt8, stream: String) throws {
        let folder = "\(Checkout.root.path)/Plugins/Standard"
        let registry = try ProfileRegistry.load(paths: [folder])
        let profile = try #require(registry.profiles.first { $0.name == "aranet-history" })
        var decoder = ReplayDecoder([profile])
        let value = CaptureValue(
            time: Timestamp(microseconds: 1_750_000_000_000_000),
            service: 0xFCE0,
            characteristic: try #require(BluetoothUUID("f0cd2005-95da-4f4b-9ac8-aa55d312af0c")),
            source: .read,
            octets: [kind, 0x3C, 0, 3, 0, 0x0A, 0, 1, 0, 1, 0x8D, 0x27]
        )
        let names = decoder.decode(value).map { outcome in
            switch outcome {
            case .decoded(let descriptor, _, _): descriptor.stream
            case .rejected(let descriptor, _, _): "rejected by \(descriptor.stream)"
            case .unknown: "unknown"
            }
        }
        #expect(names == [stream])
    }
}
