import GattherdGATT
import Testing

@testable import GattherdModel

struct AdvertisingDataTests {
    private func data(_ hex: String) -> AdvertisingData { AdvertisingData(Hexadecimal.octets(hex) ?? []) }

    @Test func `structures give name, services and frames`() {
        let data = data("020106 05030d180a18 0916d2fc400164020a09 0609506f726368")
        #expect(data.services == [0x180D, 0x180A])
        #expect(data.frames.map(\.source) == [.serviceData(0xFCD2)])
        #expect(data.frames.map(\.octets) == [[0x40, 0x01, 0x64, 0x02, 0x0A, 0x09]])
        #expect(data.name == "Porch")
        #expect(data.problem == nil)
    }

    @Test func `the complete name precedes the shortened one, and ends at a NUL`() {
        #expect(data("0408414243 07094142434400FF").name == "ABCD")
        #expect(data("0408414243").name == "ABC")
    }

    @Test func `UUIDs of all widths are read`() {
        let long = "0102030405060708090a0b0c0d0e0f10"
        let uuid = BluetoothUUID("100f0e0d-0c0b-0a09-0807-060504030201")
        #expect(data("1107\(long)").services == [uuid].compactMap(\.self))
        #expect(data("1221\(long)05").frames.map(\.source) == [uuid].compactMap(\.self).map { .serviceData($0) })
        #expect(data("0620d2fc000007").frames.map(\.octets) == [[7]])
    }

    @Test(arguments: [
        ("02010605FF9904", "the structure at byte 3 has a length of 5, but only 3 bytes follow"),
        ("FF", "the structure at byte 0 has a length of 255, but only 0 bytes follow"),
        ("02010600000A", "byte 5 comes after the end, which a length of 0 at byte 3 marks"),
        ("020106000000", nil), ("", nil),
    ])
    func `a wrong length ends the structures and is reported`(hex: String, problem: String?) {
        let data = data(hex)
        #expect(data.problem == problem)
        #expect(data.structures.allSatisfy { $0.type == 1 })
    }

    @Test func `the last of several structures of one source is used`() {
        let data = data("04FF990401 04FF990402 04FF4C0003")
        #expect(data.frames.map(\.octets) == [[2], [3]])
        #expect(data.hasRepeatedSource)
    }

    @Test func `structures too short for their identifier are not frames`() {
        #expect(data("02FF99 0216D2 0120").frames.isEmpty)
        #expect(data("0203D2").services.isEmpty)
    }

    @Test func `any bytes are read without a trap, and structures are written as they were`() {
        for seed in 0..<2000 {
            let octets = (0..<seed % 64).map { UInt8(truncatingIfNeeded: seed &* 31 &+ $0 &* $0 &* 7) }
            let data = AdvertisingData(octets)
            #expect(octets.starts(with: data.octets))
            _ = (data.name, data.services, data.frames.count)
        }
    }

    @Test func `an advertisement is made of its values`() {
        let made = AdvertisingData(
            name: "Porch",
            services: [0x180D],
            frames: [(.manufacturer(0x0499), [5]), (.serviceData(0xFCD2), [0x40])]
        )
        #expect(Hexadecimal.text(made.octets.span) == "03030d18" + "04ff990405" + "0416d2fc40" + "0609506f726368")
        #expect(AdvertisingData(made.octets).problem == nil)
    }
}
