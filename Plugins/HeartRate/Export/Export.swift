import HeartRate
import ProfileKit

private let exported = ExportedProfile(HeartRateProfile.self)

/// The entry point that gattherd calls.
@c(gattherd_profile_v1)
public func gattherdProfile(hostMinor: UInt32) -> UnsafeRawPointer { unsafe exported.table }
