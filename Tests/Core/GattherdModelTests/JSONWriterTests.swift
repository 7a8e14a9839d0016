import GattherdModel
import Testing

@Suite struct JSONWriterTests {
    private func json(_ body: (inout JSONWriter) -> Void) -> String {
        String(decoding: JSONWriter.bytes(body), as: UTF8.self)
    }

    @Test func `commas stand between elements and members, and nowhere else`() {
        let text = json { writer in
            writer.beginObject()
            writer.key("empty")
            writer.beginArray()
            writer.endArray()
            writer.key("list")
            writer.beginArray()
            writer.integer(1)
            writer.beginObject()
            writer.endObject()
            writer.beginArray()
            writer.null()
            writer.boolean(false)
            writer.endArray()
            writer.string("x")
            writer.endArray()
            writer.key("last")
            writer.raw("{}".utf8)
            writer.endObject()
        }
        #expect(text == #"{"empty":[],"list":[1,{},[null,false],"x"],"last":{}}"#)
    }

    @Test(
        arguments: [
            ("", #""""#), ("plain", #""plain""#), (#"say "hi""#, #""say \"hi\"""#), (#"C:\temp"#, #""C:\\temp""#),
            ("a/b", #""a/b""#), ("\u{0}\u{1F}\n\t", #""\u0000\u001f\u000a\u0009""#), ("\u{7F}", "\"\u{7F}\""),
            ("äöü 心拍 🫀", #""äöü 心拍 🫀""#), ("\u{2028}", "\"\u{2028}\""),
        ]
    )
    func `text is escaped as RFC 8259 requires, and otherwise unchanged`(text: String, expected: String) {
        #expect(json { $0.string(text) } == expected)
        #expect(
            json { writer in
                writer.beginObject()
                writer.key(text)
                writer.null()
                writer.endObject()
            } == "{\(expected):null}"
        )
    }

    @Test(
        arguments: [Int64.min, -1, 0, 9, 10, 1_000_000, Int64.max]
    )
    func `integers are exact over their whole range`(number: Int64) {
        #expect(json { $0.integer(number) } == "\(number)")
    }

    @Test func `unsigned and small integers are written alike`() {
        #expect(json { $0.integer(UInt64.max) } == "18446744073709551615")
        #expect(json { $0.integer(Int8.min) } == "-128")
    }

    @Test(
        arguments: [
            0, -0.0, 72, 0.1, 0.1 + 0.2, 1.0 / 3, 815.0 / 1024, 1e16, 1e300, .leastNonzeroMagnitude,
            .greatestFiniteMagnitude, -12.5,
        ]
    )
    func `a real number reads back as itself`(number: Double) {
        #expect(Double(json { $0.real(number) })?.bitPattern == number.bitPattern)
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity])
    func `numbers that are not finite are null`(number: Double) {
        #expect(json { $0.real(number) } == "null")
    }

    @Test func `a cleared writer can be reused`() {
        var writer = JSONWriter()
        writer.integer(1)
        writer.removeAll()
        writer.integer(2)
        #expect(writer.bytes == Array("2".utf8))
    }

    @Test func `an array has an element for each written value`() {
        let text = JSONWriter.text { writer in
            writer.beginObject()
            writer.key("a")
            writer.array([1, 2]) { $0.string("\($1)") }
            writer.key("b")
            writer.array([Int]()) { $0.integer($1) }
            writer.endObject()
        }
        #expect(text == #"{"a":["1","2"],"b":[]}"#)
    }
}
