import NumberService
import ProfileKit

private let exported = ExportedProfile(NumberServiceProfile.self)

/// The entry point that gattherd calls.
@c(gattherd_profile_v1)
public func gattherdProfile(hostMinor: UInt32) -> UnsafeRawPointer { unsafe exported.table }
