import GattherdGATT
import GattherdModel
import GattherdProfiles
import Testing

/// The sources of advertisements: companies, names and parts.
struct AdvertisementSourceTests {
    /// One frame of two bytes with these keys, from line 6 on.
    private static func text(_ lines: String...) -> String {
        """
        contract: 1
        profile: thing
        advertisement:
          - stream: thing
            fields: [{metric: x, type: u16le}]
        \(lines.map { "    " + $0 }.joined(separator: "\n"))
        """
    }

    private static func payload(
        _ lines: String,
        company: UInt16,
        _ octets: [UInt8],
        name: String? = nil
    ) throws
        -> [UInt8]?
    {
        try DeclarativeText.compile(text(lines)).frame(octets, from: .manufacturer(company), name: name)?.payload
    }

    @Test func `the data of any company begins with its identifier`() throws {
        #expect(try Self.payload("manufacturer: any", company: 0x07FC, [5]) == [0xFC, 0x07, 5])
        #expect(try Self.payload("manufacturer: any", company: 0xFFFF, []) == [0xFF, 0xFF])
        let profile = try DeclarativeText.compile(Self.text("manufacturer: any"))
        #expect(profile.frame([5], from: .serviceData(0x07FC), name: nil) == nil)
        #expect(profile.streams.map(\.source) == ["manufacturer any"])
    }

    @Test func `the data of a list of companies begins with the identifier, that of one does not`() throws {
        #expect(try Self.payload("manufacturer: [0xEC88, 1]", company: 1, [5]) == [1, 0, 5])
        #expect(try Self.payload("manufacturer: [0xEC88, 1]", company: 2, [5]) == nil)
        #expect(try Self.payload("manufacturer: 1", company: 1, [5]) == [5])
    }

    @Test func `a frame may begin with the identifier`() throws {
        let text = Self.text("manufacturer: any", "begins: C2")
        let profile = try DeclarativeText.compile(text)
        #expect(profile.frame([1], from: .manufacturer(0xF1C2), name: nil)?.payload == [0xC2, 0xF1, 1])
        #expect(profile.frame([1], from: .manufacturer(0xC2F1), name: nil) == nil)
    }

    @Test func `a frame of any company that has a name needs one`() throws {
        let text = Self.text("manufacturer: any", "name: sps")
        let profile = try DeclarativeText.compile(text)
        #expect(profile.frame([1], from: .manufacturer(0x0499), name: nil) == nil)
        #expect(profile.frame([1], from: .manufacturer(0x0499), name: "tag") == nil)
        #expect(profile.frame([1], from: .manufacturer(0x0499), name: "sps")?.payload == [0x99, 0x04, 1])
    }

    @Test func `one of several names suffices`() throws {
        let profile = try DeclarativeText.compile(Self.text("manufacturer: 1", "name: [sps, TP35*]"))
        let index = { profile.frame([1, 2], from: .manufacturer(1), name: $0)?.index }
        #expect(["sps", "TP357 (2142)", nil].map(index) == [0, 0, 0])
        #expect(["spsx", "", "T"].map(index) == [nil, nil, nil])
    }

    @Test func `a frame of several parts has their length and source`() throws {
        let text = Self.text("manufacturer: 0x0969", "after: {service_data: fd3d, begins: 77, length: 3}", "length: 5")
        let profile = try DeclarativeText.compile(text)
        let frame = try #require(profile.advertisements.first)
        let part = try #require(frame.before.first)
        #expect(profile.streams.map(\.source) == ["fd3d + manufacturer 0969"])
        #expect(part.contents([0x77, 0, 1], from: .serviceData(0xFD3D)) == [0x77, 0, 1])
        #expect(part.contents([0x54, 0, 1], from: .serviceData(0xFD3D)) == nil)
        #expect(part.contents([0x77, 0], from: .serviceData(0xFD3D)) == nil)
        #expect(part.contents([0x77, 0, 1], from: .manufacturer(0xFD3D)) == nil)
        #expect(profile.frame([1, 2], from: .manufacturer(0x0969), name: nil) == nil)
        #expect(profile.frame(for: [0x77, 0, 1, 2, 3], like: 0) == 0)
    }

    @Test(
        arguments: [
            (text("manufacturer: all"), "6:19: 'all' is invalid; expected a company's number from 0 to 0xFFFF"),
            (text("manufacturer: []"), "6:5: a list of companies has 1 to 64, such as [0xEC88, 0x8801]"),
            (text("manufacturer: [1, x]"), "6:23: 'x' is invalid; expected a company's number"),
            (text("manufacturer: 1", "begins: 0x04"), "7:13: '0x04' is invalid; expected the first bytes, such as"),
            (text("manufacturer: 1", "after: []"), "7:5: 'after' is one part or a list of at most 3"),
            (text("manufacturer: 1", "after: fd3d"), "7:12: a part must be a mapping of keys to values"),
            (text("manufacturer: 1", "after: {length: 3}"), "7:12: a part has either 'manufacturer' or 'service_data'"),
            (text("manufacturer: 1", "after: {service_data: fd3d}"), "7:12: a part needs 'length': an integer"),
            (
                text("manufacturer: 1", "after: {service_data: fd3d, lenght: 3}"),
                "7:33: a part has no key 'lenght'; did you mean 'length'?"
            ),
            (text("manufacturer: 1", "name: {a: b}"), "7:11: this is a mapping; expected a text"),
        ]
    )
    func `errors in sources have a position`(text: String, error: String) throws {
        let errors = try DeclarativeText.errors(text)
        #expect(errors.contains { $0.hasPrefix(error) }, "\(errors)")
    }
}
