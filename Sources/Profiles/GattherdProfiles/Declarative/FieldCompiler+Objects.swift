import GattherdYAML

extension FieldCompiler {
    private static let maximumKinds = 256
    private static let maximumFieldsOfKind = 16

    /// Compiles `objects` and `kinds`.
    mutating func addObjects(_ field: MappingReader) {
        let condition = condition(field)
        guard let catalogue = catalogue(field) else { return field.abandon() }
        let (index, errors) = (program.steps.count, findings.count)
        let position = program.add(catalogue)
        var step = DecodeProgram.Step(.objects(position), conversion: program.add(Conversion(name: "objects")))
        step.condition = condition
        add(step, field)
        numberedGroup(field) { compiler in compiler.addKinds(field, position, catalogue) }
        program.close(catalogue: position)
        if program.steps.count == index + 1, findings.count == errors {
            field.report("'objects' needs 'kinds'", at: "objects")
        }
        consume(field, takesRest: condition == nil)
    }

    /// Reads the types of the number and the size of each object.
    private mutating func catalogue(_ field: MappingReader) -> ObjectCatalogue? {
        guard let node = field.node("objects"),
            let reader = MappingReader(node, .objects, findings: findings)
        else { return nil }
        defer { reader.finish() }
        let number = reader.required("id", .unsigned(most: 4))
        let size = reader.value("size", .unsigned(most: 2))
        guard let number, size != nil || !reader.has("size") else { return nil }
        return ObjectCatalogue(
            number: number,
            size: size,
            sizeRegister: size.map { names.add("size", bits: Int64(8 * $0.octets)) }
        )
    }

    private mutating func addKinds(_ field: MappingReader, _ position: Int, _ catalogue: ObjectCatalogue) {
        guard let node = field.node("kinds") else { return }
        guard let members = node.members, !members.isEmpty, members.count <= Self.maximumKinds else {
            return field.report("'kinds' is a mapping of 1 to \(Self.maximumKinds) numbers to fields", at: "kinds")
        }
        let numbers = ProfileGrammar<Int64>.integer(0...(1 << Int64(8 * catalogue.number.octets)) - 1)
        for member in members {
            let first = program.steps.count
            startKind()
            let nodes = member.value.elements ?? [member.value]
            for node in nodes.prefix(Self.maximumFieldsOfKind) { add(node) }
            if nodes.count > Self.maximumFieldsOfKind {
                findings.report("an object has at most \(Self.maximumFieldsOfKind) fields", at: member.value.position)
            }
            guard let number = numbers.read(member.key, findings) else { continue }
            if !program.add(kind: UInt64(number), from: first, to: position) {
                findings.report("there is a kind \(member.name) already", at: member.key.position)
            }
        }
    }
}

extension ProfileGrammar<ObjectCatalogue.Number> {
    /// The grammar of an unsigned integer type of `most` bytes.
    static func unsigned(most: Int) -> Self {
        ProfileGrammar("an unsigned type of at most \(most) bytes, such as u8 or u16le") { text in
            guard
                case .integer(let octets, false, let isBigEndian) = FieldType.words.first(where: { $0.word == text })?
                    .value,
                octets <= most
            else { return nil }
            return ObjectCatalogue.Number(octets: octets, isBigEndian: isBigEndian)
        }
    }
}
