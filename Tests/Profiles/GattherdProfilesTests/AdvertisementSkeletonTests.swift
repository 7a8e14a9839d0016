import GattherdGATT
import GattherdModel
import Testing

@testable import GattherdProfiles

struct AdvertisementSkeletonTests {
    private typealias Frame = (source: AdvertisementSource, octets: [UInt8])

    private func text(_ frames: [Frame], name: String? = nil) -> String {
        AdvertisementSkeleton(name: "porch", origin: "a device", deviceName: name, frames: frames).text
    }

    private func expectPassing(_ text: String, tests: Int) throws {
        let profile = try ProfileCompiler.compile(Array(text.utf8), origin: "porch.yaml")
        let results = ProfileTools.runVectors(of: profile)
        #expect(results.count == tests)
        #expect(results.compactMap(\.failure) == [])
    }

    @Test func `each length of each source is a stream, and each value a test that passes`() throws {
        let text = text([
            (.manufacturer(0xFFFF), [0xA5, 1, 2, 3, 4]), (.manufacturer(0xFFFF), [0xA5, 1, 9, 3, 4]),
            (.manufacturer(0xFFFF), [7]), (.serviceData(0xFCD2), [0x40, 1]), (.serviceData(0xFCD2), [0x40, 1]),
        ])
        try expectPassing(text, tests: 4)
        #expect(text.contains("# 5 bytes. In 2 values, the bytes 2 differ.\n  - manufacturer: 0xFFFF\n"))
        #expect(text.contains("  - service_data: fcd2\n    length: 2\n    stream: data_3\n"))
    }

    @Test(arguments: ["Porch \"7\"\n*: {", "", "\u{1B}[31m", "ÄÖ 'x' # y"])
    func `any name of a device gives a valid file`(name: String) throws {
        try expectPassing(text([(.manufacturer(1), [1, 2])], name: name), tests: 1)
    }

    @Test func `a flood of lengths is bounded`() throws {
        let frames = (1...200).map { length -> Frame in
            (.manufacturer(1), [UInt8](repeating: UInt8(length & 0xFF), count: length))
        }
        try expectPassing(text(frames), tests: 16)
    }
}
