import GattherdGATT
import NumberService
import ProfileKit
import Testing

struct NumberServiceProfileTests {
    private let rehearsal = ProfileTester(NumberServiceProfile.self)

    @Test(arguments: [0, 1, 127, 128, 255] as [UInt8])
    func `one octet is the number`(octet: UInt8) throws {
        #expect(
            try rehearsal.decode([octet], stream: "number") == [ProfileTester.Sample("number", .integer(Int64(octet)))]
        )
    }

    @Test(
        arguments: [
            ([], "truncated: a field at offset 0 needs 1 octet, 0 left"),
            ([1, 2], "too long: 1 octet after the last field, at offset 1"),
            (Array("Some Number".utf8), "too long: 10 octets after the last field, at offset 1"),
        ] as [([UInt8], String)]
    )
    func `payloads of another length are rejected`(payload: [UInt8], reason: String) {
        let error = #expect(throws: PayloadError.self) { try rehearsal.decode(payload, stream: "number") }
        #expect(error?.description == reason)
    }

    @Test(arguments: [0, 127, 255] as [Int64])
    func `the control writes one octet`(number: Int64) throws {
        #expect(try rehearsal.encode(number, control: "number") == [UInt8(number)])
    }

    @Test(arguments: [-1, 256, .max] as [Int64])
    func `the control refuses numbers beyond one octet`(number: Int64) {
        #expect(throws: PayloadError.self) { try rehearsal.encode(number, control: "number") }
    }
}
