import FoundationEssentials
import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

@testable import GattherdCapture
@testable import gattherd

/// Whole advertisements, decoded as the daemon does.
struct AdvertisementReplayTests {
    private static let address = BluetoothAddress(value: 0xC0FF_EE00_0001)

    private static let ruuvi = "0201061bff99040512fc5394c37c0004fffc040cac364200cdcbb8334c884f"

    private func replay() throws -> AdvertisementReplay {
        AdvertisementReplay(try ProfileRegistry.load(paths: ["\(Checkout.root.path)/Plugins/Standard"]))
    }

    private func advertisement(_ hex: String, at seconds: Int64?) throws -> CapturedAdvertisement {
        CapturedAdvertisement(
            time: seconds.map { Timestamp(microseconds: 1_790_000_000_000_000 + $0 * 1_000_000) },
            address: Self.address,
            octets: try #require(Hexadecimal.octets(hex))
        )
    }

    private func kind(_ outcome: AdvertisementReplay.Outcome?) -> String {
        switch outcome?.result {
        case .decoded(let samples): "\(samples.count) samples"
        case .rejected(let reason): reason
        case .repeated: "repeated"
        case nil: "nothing"
        }
    }

    @Test func `a capture without an end keeps the senders that were heard last`() throws {
        var replay = AdvertisementReplay(try ProfileRegistry.load(paths: []))
        for sender in 0..<20_000 as Range<UInt64> {
            _ = replay.decode(CapturedAdvertisement(address: BluetoothAddress(value: sender), octets: [2, 1, 6]))
        }
        #expect(replay.senderCount <= AdvertisementReplay.mostSenders)
    }

    @Test func `a model is recognised, and repetitions are left out for the profile's time`() throws {
        var replay = try replay()
        let first = try #require(try replay.decode(advertisement(Self.ruuvi, at: 0)))
        #expect(first.map(\.profile.name) == ["ruuvitag"])
        #expect(first.first?.model?.description == "Ruuvi RuuviTag")
        #expect(kind(first.first) == "10 samples")
        let second = try replay.decode(advertisement(Self.ruuvi, at: 1))
        #expect(kind(second?.first) == "repeated")
    }

    @Test func `a scan response without data neither hides the profile nor counts as unknown`() throws {
        var replay = try replay()
        let counts = try ["0509526f6f6d", Self.ruuvi, "0509526f6f6d"].map { hex in
            try replay.decode(advertisement(hex, at: 0))?.count
        }
        #expect(counts == [nil, 1, 0])
    }

    @Test func `the profile of an advertiser is named only if it needs a connection`() throws {
        var replay = try replay()
        // Advertisements with the names UT353BT and room.
        for (hex, name) in [("080955543335334254", "uni-t-meter"), ("0509726f6f6d", nil)] as [(String, String?)] {
            let captured = try advertisement(hex, at: nil)
            replay.learn(captured)
            #expect(replay.connectedIdentity(of: captured)?.profile == name)
            replay = try self.replay()
        }
        let ruuvi = try advertisement(Self.ruuvi, at: nil)
        #expect(replay.connectedIdentity(of: ruuvi) == nil)
    }

    @Test func `lines without a time are all decoded`() throws {
        var replay = try replay()
        let hex = "0916d2fc400164020a09"
        let outcomes = try (0..<2).map { _ in kind(try replay.decode(advertisement(hex, at: nil))?.first) }
        #expect(outcomes == ["2 samples", "2 samples"])
    }

    @Test func `a later name also applies to earlier advertisements`() throws {
        var replay = try replay()
        // Two bytes of temperature and five more, which only the name sps tells from the data of a company.
        let data = try advertisement("0aff fc07c71200c83d5606", at: 0)
        let before = replay.decode(data)?.count
        replay.learn(try advertisement("0409737073", at: 0))
        let after = replay.decode(data)?.count
        #expect((before ?? 0, after) == (0, 1))
    }

    @Test func `any bytes are replayed without an error`() throws {
        var replay = try replay()
        for seed in 0..<500 {
            let octets = (0..<31).map { UInt8(truncatingIfNeeded: seed &* 193 &+ $0 &* $0 &* 31) }
            _ = replay.decode(CapturedAdvertisement(octets: octets))
        }
    }
}
