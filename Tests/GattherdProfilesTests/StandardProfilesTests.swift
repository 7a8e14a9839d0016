import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

/// The declarative profiles that come with gattherd.
struct StandardProfilesTests {
    private let registry: ProfileRegistry

    init() throws {
        registry = try ProfileRegistry.load(paths: [SharedLibrary.root + "/Plugins/Standard"])
    }

    @Test func `All of them are good`() {
        #expect(registry.refusals.map(\.description) == [])
        #expect(
            registry.profiles.map(\.name)
                == ["battery", "device-information", "environmental-sensing", "health-thermometer"]
        )
    }

    @Test func `Every characteristic has a test, and all tests pass`() {
        for profile in registry.profiles {
            let results = ProfileTools.runVectors(of: profile)
            #expect(Set(results.map(\.stream)) == Set(profile.characteristics.map(\.stream)))
            #expect(results.compactMap(\.failure) == [], "\(profile.name)")
        }
    }

    @Test func `Every characteristic is one that the Bluetooth SIG knows`() {
        for profile in registry.profiles {
            for characteristic in profile.characteristics { #expect(characteristic.uuid.assignedName != nil) }
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `Octets of any kind and number never trap`() {
        var generator = SplitMix(state: 1)
        for profile in registry.profiles {
            let session = profile.makeSession()
            for index in profile.characteristics.indices {
                for octet in [0x00, 0xFF] as [UInt8] {
                    for length in 0..<24 {
                        session.tryDecode(Array(repeating: octet, count: length), characteristic: index)
                    }
                }
                for _ in 0..<5000 { session.tryDecode(generator.payload(atMost: 24), characteristic: index) }
            }
        }
    }
}
