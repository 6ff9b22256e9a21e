// Our declarations of CUDA's and CUPTI's structures and numbers against the toolkit's own headers. Built only where those are found;
// what differs does not compile.
#include <cuda.h>
#include <cupti.h>
#include <cupti_activity_deprecated.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_sass_metrics.h>
#include <cupti_target.h>
#include <gtest/gtest.h>

#include "frontend/capture/inject/abi.h"
#include "frontend/capture/inject/abi_profiler.h"

namespace heddle::capture {
namespace {

#define SAME_AT(ours, our_field, theirs, their_field) \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field), #theirs "." #their_field)
#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME_NUMBER(ours, theirs) \
  static_assert(static_cast<uint64_t>(ours) == static_cast<uint64_t>(theirs), #theirs)

SAME_SIZE(abi::CallbackData, CUpti_CallbackData);
SAME_AT(abi::CallbackData, parameters, CUpti_CallbackData, functionParams);
SAME_AT(abi::CallbackData, return_value, CUpti_CallbackData, functionReturnValue);
SAME_AT(abi::CallbackData, symbol_name, CUpti_CallbackData, symbolName);
SAME_AT(abi::CallbackData, context_uid, CUpti_CallbackData, contextUid);
SAME_AT(abi::CallbackData, correlation_id, CUpti_CallbackData, correlationId);
SAME_SIZE(abi::ResourceData, CUpti_ResourceData);
SAME_AT(abi::ResourceData, descriptor, CUpti_ResourceData, resourceDescriptor);
SAME_SIZE(abi::ModuleData, CUpti_ModuleResourceData);
SAME_AT(abi::ModuleData, cubin, CUpti_ModuleResourceData, pCubin);
SAME_SIZE(abi::GraphData, CUpti_GraphData);
SAME_AT(abi::GraphData, original_node, CUpti_GraphData, originalNode);
SAME_AT(abi::GraphData, dependency, CUpti_GraphData, dependency);
SAME_AT(abi::GraphData, graph_exec, CUpti_GraphData, graphExec);
SAME_SIZE(abi::SubscriberParams, CUpti_SubscriberParams);

SAME_NUMBER(abi::kDriverApi, CUPTI_CB_DOMAIN_DRIVER_API);
SAME_NUMBER(abi::kResource, CUPTI_CB_DOMAIN_RESOURCE);
SAME_NUMBER(abi::kExit, CUPTI_API_EXIT);
SAME_NUMBER(abi::kContextCreated, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
SAME_NUMBER(abi::kStreamDestroyStarting, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING);
SAME_NUMBER(abi::kModuleLoaded, CUPTI_CBID_RESOURCE_MODULE_LOADED);
SAME_NUMBER(abi::kModuleUnloadStarting, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
SAME_NUMBER(abi::kGraphNodeCreated, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
SAME_NUMBER(abi::kGraphNodeDependencyCreated, CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED);
SAME_NUMBER(abi::kGraphExecCreated, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
SAME_NUMBER(abi::kGraphNodeCloned, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
SAME_NUMBER(abi::kMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME_NUMBER(abi::kMemset, CUPTI_ACTIVITY_KIND_MEMSET);
SAME_NUMBER(abi::kMemcpyPeer, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME_NUMBER(abi::kConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);

#define HEDDLE_DRIVER_CALL(name, id) SAME_NUMBER(id, CUPTI_DRIVER_TRACE_CBID_##name);
#include "frontend/capture/inject/driver_calls.def"
#undef HEDDLE_DRIVER_CALL

static_assert(sizeof(abi::KernelActivity) <= 200, "CUPTI 12.0's record has 200 bytes");
SAME_AT(abi::KernelActivity, start, CUpti_ActivityKernel10, start);
SAME_AT(abi::KernelActivity, device_id, CUpti_ActivityKernel10, deviceId);
SAME_AT(abi::KernelActivity, stream_id, CUpti_ActivityKernel10, streamId);
SAME_AT(abi::KernelActivity, correlation_id, CUpti_ActivityKernel10, correlationId);
SAME_AT(abi::KernelActivity, name, CUpti_ActivityKernel10, name);
SAME_AT(abi::KernelActivity, graph_node_id, CUpti_ActivityKernel10, graphNodeId);
SAME_AT(abi::KernelActivity, graph_id, CUpti_ActivityKernel10, graphId);
SAME_AT(abi::MemcpyActivity, correlation_id, CUpti_ActivityMemcpy6, correlationId);
SAME_AT(abi::MemsetActivity, correlation_id, CUpti_ActivityMemset4, correlationId);
SAME_AT(abi::PeerCopyActivity, correlation_id, CUpti_ActivityMemcpyPtoP4, correlationId);
SAME_AT(abi::PeerCopyActivity, copy_kind, CUpti_ActivityMemcpyPtoP4, copyKind);
// CUPTI 12.0's copies: the fields that are read lie where they lie now, within a record of 88 bytes.
static_assert(sizeof(abi::MemcpyActivity) <= sizeof(CUpti_ActivityMemcpy5));
SAME_AT(abi::MemcpyActivity, copy_kind, CUpti_ActivityMemcpy5, copyKind);
SAME_AT(abi::MemcpyActivity, bytes, CUpti_ActivityMemcpy5, bytes);
SAME_AT(abi::MemcpyActivity, end, CUpti_ActivityMemcpy5, end);
SAME_AT(abi::MemcpyActivity, correlation_id, CUpti_ActivityMemcpy5, correlationId);

SAME_SIZE(abi::LaunchAttribute, CUlaunchAttribute);
SAME_AT(abi::LaunchAttribute, value, CUlaunchAttribute, value);
SAME_NUMBER(abi::kCooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SAME_NUMBER(abi::kCluster, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME_NUMBER(abi::kProgrammaticSerialization, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME_SIZE(abi::LaunchConfig, CUlaunchConfig);
SAME_AT(abi::LaunchConfig, stream, CUlaunchConfig, hStream);
SAME_AT(abi::LaunchConfig, attributes, CUlaunchConfig, attrs);
SAME_AT(abi::LaunchConfig, attribute_count, CUlaunchConfig, numAttrs);
SAME_SIZE(abi::LaunchParams, cuLaunchKernel_params);
SAME_AT(abi::LaunchParams, stream, cuLaunchKernel_params, hStream);
SAME_AT(abi::LaunchParams, kernel_params, cuLaunchKernel_params, kernelParams);
SAME_AT(abi::LaunchParams, kernel_params, cuLaunchCooperativeKernel_params, kernelParams);
SAME_SIZE(abi::LaunchExParams, cuLaunchKernelEx_params);
SAME_AT(abi::LaunchExParams, function, cuLaunchKernelEx_params, f);
SAME_SIZE(abi::KernelNodeParams, CUDA_KERNEL_NODE_PARAMS_v2);
SAME_AT(abi::KernelNodeParams, kernel_params, CUDA_KERNEL_NODE_PARAMS_v2, kernelParams);
SAME_AT(abi::KernelNodeParams, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern);
SAME_NUMBER(abi::kExtraBufferPointer, CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT);
SAME_NUMBER(abi::kExtraBufferSize, CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT);

SAME_AT(abi::ModuleLoadParams, image, cuModuleLoadDataEx_params, image);
SAME_AT(abi::ModuleLoadParams, image, cuLibraryLoadData_params, code);
SAME_AT(abi::GetByNameParams, name, cuModuleGetFunction_params, name);
SAME_AT(abi::GetByNameParams, owner, cuLibraryGetKernel_params, library);
SAME_AT(abi::GetParams, owner, cuKernelGetFunction_params, kernel);
SAME_AT(abi::GetParams, owner, cuLibraryGetModule_params, library);
SAME_AT(abi::AllocParams, bytes, cuMemAlloc_v2_params, bytesize);
SAME_AT(abi::PoolAllocParams, pool, cuMemAllocFromPoolAsync_params, pool);
SAME_AT(abi::PoolAllocParams, stream, cuMemAllocFromPoolAsync_params, hStream);
SAME_AT(abi::PeerCopyParams, source, cuMemcpyPeer_params, srcDevice);
SAME_AT(abi::PeerCopyParams, bytes, cuMemcpyPeer_params, ByteCount);
SAME_AT(abi::PeerCopyParams, stream, cuMemcpyPeerAsync_params, hStream);
SAME_AT(abi::AllocPitchParams, height, cuMemAllocPitch_v2_params, Height);
SAME_AT(abi::MapParams, bytes, cuMemMap_params, size);
SAME_AT(abi::MapParams, bytes, cuMemUnmap_params, size);
SAME_AT(abi::CopyParams, bytes, cuMemcpyHtoD_v2_params, ByteCount);
SAME_AT(abi::CopyParams, source, cuMemcpyDtoHAsync_v2_params, srcDevice);
SAME_AT(abi::CopyParams, stream, cuMemcpyDtoDAsync_v2_params, hStream);
SAME_AT(abi::CopyParams, stream, cuMemcpyAsync_params, hStream);
SAME_AT(abi::FillParams, value, cuMemsetD8_v2_params, uc);
SAME_AT(abi::FillParams, count, cuMemsetD16Async_params, N);
SAME_AT(abi::FillParams, stream, cuMemsetD32Async_params, hStream);
SAME_AT(abi::Fill2DParams, value, cuMemsetD2D8_v2_params, uc);
SAME_AT(abi::Fill2DParams, width, cuMemsetD2D16_v2_params, Width);
SAME_AT(abi::Fill2DParams, stream, cuMemsetD2D32Async_params, hStream);
SAME_SIZE(abi::Copy2D, CUDA_MEMCPY2D);
SAME_AT(abi::Copy2D, source.device, CUDA_MEMCPY2D, srcDevice);
SAME_AT(abi::Copy2D, source.pitch, CUDA_MEMCPY2D, srcPitch);
SAME_AT(abi::Copy2D, destination.type, CUDA_MEMCPY2D, dstMemoryType);
SAME_AT(abi::Copy2D, destination.pitch, CUDA_MEMCPY2D, dstPitch);
SAME_AT(abi::Copy2D, height, CUDA_MEMCPY2D, Height);
SAME_SIZE(abi::Copy3D, CUDA_MEMCPY3D);
SAME_SIZE(abi::Copy3D, CUDA_MEMCPY3D_PEER);
SAME_AT(abi::Copy3D, source.type, CUDA_MEMCPY3D, srcMemoryType);
SAME_AT(abi::Copy3D, source.height, CUDA_MEMCPY3D, srcHeight);
SAME_AT(abi::Copy3D, destination.z, CUDA_MEMCPY3D, dstZ);
SAME_AT(abi::Copy3D, destination.device, CUDA_MEMCPY3D_PEER, dstDevice);
SAME_AT(abi::Copy3D, destination.height, CUDA_MEMCPY3D, dstHeight);
SAME_AT(abi::Copy3D, depth, CUDA_MEMCPY3D, Depth);
SAME_NUMBER(abi::kHostMemory, CU_MEMORYTYPE_HOST);
SAME_NUMBER(abi::kDeviceMemory, CU_MEMORYTYPE_DEVICE);
SAME_NUMBER(abi::kArrayMemory, CU_MEMORYTYPE_ARRAY);
SAME_NUMBER(abi::kUnifiedMemory, CU_MEMORYTYPE_UNIFIED);
SAME_AT(abi::Copy2DParams, stream, cuMemcpy2DAsync_v2_params, hStream);
SAME_AT(abi::Copy3DParams, stream, cuMemcpy3DAsync_v2_params, hStream);
SAME_AT(abi::Copy3DParams, stream, cuMemcpy3DPeerAsync_params, hStream);
SAME_SIZE(abi::FillNodeParams, CUDA_MEMSET_NODE_PARAMS);
SAME_AT(abi::FillNodeParams, element_bytes, CUDA_MEMSET_NODE_PARAMS, elementSize);
SAME_AT(abi::FillNodeParams, height, CUDA_MEMSET_NODE_PARAMS, height);
SAME_AT(abi::GraphAddTransferParams, transfer, cuGraphAddMemcpyNode_params, copyParams);
SAME_AT(abi::GraphAddTransferParams, transfer, cuGraphAddMemsetNode_params, memsetParams);
SAME_AT(abi::GraphSetTransferParams, transfer, cuGraphMemcpyNodeSetParams_params, nodeParams);
SAME_AT(abi::GraphSetTransferParams, transfer, cuGraphMemsetNodeSetParams_params, nodeParams);
SAME_AT(abi::GraphExecSetTransferParams, transfer, cuGraphExecMemcpyNodeSetParams_params, copyParams);
SAME_AT(abi::GraphExecSetTransferParams, transfer, cuGraphExecMemsetNodeSetParams_params, memsetParams);
SAME_SIZE(abi::NodeParams, CUgraphNodeParams);
SAME_AT(abi::NodeParams, of.kernel, CUgraphNodeParams, kernel);
SAME_AT(abi::NodeParams, of.copy.params, CUgraphNodeParams, memcpy.copyParams);
SAME_AT(abi::NodeParams, of.fill, CUgraphNodeParams, memset);
SAME_SIZE(abi::KernelNodeParams, CUDA_KERNEL_NODE_PARAMS_v3);
SAME_AT(abi::KernelNodeParams, kernel, CUDA_KERNEL_NODE_PARAMS_v3, kern);
SAME_NUMBER(abi::kKernelNode, CU_GRAPH_NODE_TYPE_KERNEL);
SAME_NUMBER(abi::kCopyNode, CU_GRAPH_NODE_TYPE_MEMCPY);
SAME_NUMBER(abi::kFillNode, CU_GRAPH_NODE_TYPE_MEMSET);
SAME_AT(abi::GraphAddNodeParams, params, cuGraphAddNode_params, nodeParams);
SAME_AT(abi::GraphAddNode2Params, params, cuGraphAddNode_v2_params, nodeParams);
SAME_AT(abi::GraphSetNodeParams, params, cuGraphNodeSetParams_params, nodeParams);
SAME_AT(abi::GraphExecSetNodeParams, params, cuGraphExecNodeSetParams_params, nodeParams);
SAME_AT(abi::EventRecordParams, stream, cuEventRecordWithFlags_params, hStream);
SAME_AT(abi::StreamWaitParams, event, cuStreamWaitEvent_params, hEvent);
SAME_AT(abi::GraphLaunchParams, stream, cuGraphLaunch_params, hStream);
SAME_AT(abi::GraphAddKernelParams, kernel, cuGraphAddKernelNode_v2_params, nodeParams);
SAME_AT(abi::GraphSetKernelParams, kernel, cuGraphKernelNodeSetParams_v2_params, nodeParams);
SAME_AT(abi::GraphExecSetKernelParams, kernel, cuGraphExecKernelNodeSetParams_v2_params, nodeParams);
SAME_AT(abi::TensorMapParams, type, cuTensorMapEncodeTiled_params, tensorDataType);
SAME_AT(abi::TensorMapParams, stride_bytes, cuTensorMapEncodeTiled_params, globalStrides);
SAME_AT(abi::TensorMapParams, fill, cuTensorMapEncodeTiled_params, oobFill);
SAME_NUMBER(abi::kTensorMapBytes, sizeof(CUtensorMap));
SAME_SIZE(abi::Im2colMapParams, cuTensorMapEncodeIm2col_params);
SAME_AT(abi::Im2colMapParams, lower_corner, cuTensorMapEncodeIm2col_params, pixelBoxLowerCorner);
SAME_AT(abi::Im2colMapParams, element_stride, cuTensorMapEncodeIm2col_params, elementStrides);
SAME_AT(abi::Im2colMapParams, fill, cuTensorMapEncodeIm2col_params, oobFill);
SAME_SIZE(abi::WideMapParams, cuTensorMapEncodeIm2colWide_params);
SAME_AT(abi::WideMapParams, element_stride, cuTensorMapEncodeIm2colWide_params, elementStrides);
SAME_AT(abi::WideMapParams, mode, cuTensorMapEncodeIm2colWide_params, mode);
SAME_AT(abi::ReplaceAddressParams, address, cuTensorMapReplaceAddress_params, globalAddress);

// Parameters of the measuring functions: what CUPTI takes for their size, and the fields that are read or written.
#define SAME_PARAMS(ours, last, theirs, size)                        \
  static_assert(HEDDLE_SIZE_TO(abi::ours, last) == (size), #theirs); \
  SAME_SIZE(abi::ours, theirs)

SAME_PARAMS(SizeOnly, reserved, CUpti_Profiler_Initialize_Params,
            CUpti_Profiler_Initialize_Params_STRUCT_SIZE);
SAME_PARAMS(ChipName, chip, CUpti_Device_GetChipName_Params, CUpti_Device_GetChipName_Params_STRUCT_SIZE);
SAME_PARAMS(HostChips, names, CUpti_Profiler_Host_GetSupportedChips_Params,
            CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE);
SAME_PARAMS(HostInitialize, host, CUpti_Profiler_Host_Initialize_Params,
            CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE);
SAME_AT(abi::HostInitialize, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
SAME_PARAMS(HostObject, host, CUpti_Profiler_Host_Deinitialize_Params,
            CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE);
SAME_PARAMS(HostMetricProperties, type, CUpti_Profiler_Host_GetMetricProperties_Params,
            CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE);
SAME_AT(abi::HostMetricProperties, unit, CUpti_Profiler_Host_GetMetricProperties_Params, pDimUnit);
SAME_PARAMS(HostAddMetrics, count, CUpti_Profiler_Host_ConfigAddMetrics_Params,
            CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE);
SAME_PARAMS(HostImageSize, image_bytes, CUpti_Profiler_Host_GetConfigImageSize_Params,
            CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE);
SAME_PARAMS(HostImage, image, CUpti_Profiler_Host_GetConfigImage_Params,
            CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE);
SAME_PARAMS(HostEvaluate, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params,
            CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE);
SAME_AT(abi::HostEvaluate, range, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
SAME_AT(abi::HostEvaluate, count, CUpti_Profiler_Host_EvaluateToGpuValues_Params, numMetrics);
SAME_PARAMS(RangeEnable, profiler, CUpti_RangeProfiler_Enable_Params,
            CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE);
SAME_PARAMS(RangeObject, profiler, CUpti_RangeProfiler_Start_Params,
            CUpti_RangeProfiler_Start_Params_STRUCT_SIZE);
SAME_PARAMS(RangeSetConfig, target_nesting_level, CUpti_RangeProfiler_SetConfig_Params,
            CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE);
SAME_AT(abi::RangeSetConfig, data, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
SAME_AT(abi::RangeSetConfig, replay, CUpti_RangeProfiler_SetConfig_Params, replayMode);
SAME_AT(abi::RangeSetConfig, most_ranges, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
SAME_AT(abi::RangeSetConfig, nesting_levels, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels);
SAME_AT(abi::RangeSetConfig, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex);
SAME_PARAMS(RangeStop, all_passes, CUpti_RangeProfiler_Stop_Params,
            CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE);
SAME_PARAMS(RangeDecode, dropped, CUpti_RangeProfiler_DecodeData_Params,
            CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE);
SAME_PARAMS(RangeDataSize, data_bytes, CUpti_RangeProfiler_GetCounterDataSize_Params,
            CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE);
SAME_AT(abi::RangeDataSize, most_nodes, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes);
SAME_PARAMS(RangeDataInitialize, data, CUpti_RangeProfiler_CounterDataImage_Initialize_Params,
            CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE);
SAME_PARAMS(RangeDataInfo, ranges, CUpti_RangeProfiler_GetCounterDataInfo_Params,
            CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE);
SAME_NUMBER(abi::kAutoRange, CUPTI_AutoRange);
SAME_NUMBER(abi::kKernelReplay, CUPTI_KernelReplay);
SAME_NUMBER(abi::kRangeProfilerType, CUPTI_PROFILER_TYPE_RANGE_PROFILER);
SAME_PARAMS(SassProperties, details, CUpti_SassMetrics_GetProperties_Params,
            CUpti_SassMetrics_GetProperties_Params_STRUCT_SIZE);
SAME_SIZE(abi::SassConfig, CUpti_SassMetrics_Config);
SAME_PARAMS(SassSetConfig, device, CUpti_SassMetricsSetConfig_Params,
            CUpti_SassMetricsSetConfig_Params_STRUCT_SIZE);
SAME_PARAMS(SassUnsetConfig, device, CUpti_SassMetricsUnsetConfig_Params,
            CUpti_SassMetricsUnsetConfig_Params_STRUCT_SIZE);
SAME_PARAMS(SassEnable, lazy, CUpti_SassMetricsEnable_Params, CUpti_SassMetricsEnable_Params_STRUCT_SIZE);
SAME_PARAMS(SassDisable, dropped, CUpti_SassMetricsDisable_Params,
            CUpti_SassMetricsDisable_Params_STRUCT_SIZE);
SAME_PARAMS(SassDataProperties, instances, CUpti_SassMetricsGetDataProperties_Params,
            CUpti_SassMetricsGetDataProperties_Params_STRUCT_SIZE);
SAME_SIZE(abi::SassValue, CUpti_SassMetrics_InstanceValue);
SAME_SIZE(abi::SassData, CUpti_SassMetrics_Data);
SAME_AT(abi::SassData, pc_offset, CUpti_SassMetrics_Data, pcOffset);
SAME_AT(abi::SassData, values, CUpti_SassMetrics_Data, pInstanceValues);
SAME_PARAMS(SassFlush, instances, CUpti_SassMetricsFlushData_Params,
            CUpti_SassMetricsFlushData_Params_STRUCT_SIZE);
SAME_SIZE(abi::PcStall, CUpti_PCSamplingStallReason);
SAME_SIZE(abi::PcData, CUpti_PCSamplingPCData);
SAME_AT(abi::PcData, stalls, CUpti_PCSamplingPCData, stallReason);
SAME_AT(abi::PcData, correlation_id, CUpti_PCSamplingPCData, correlationId);
SAME_SIZE(abi::PcSamples, CUpti_PCSamplingData);
SAME_AT(abi::PcSamples, data, CUpti_PCSamplingData, pPcData);
SAME_AT(abi::PcSamples, remaining_pcs, CUpti_PCSamplingData, remainingNumPcs);
SAME_SIZE(abi::PcConfiguration, CUpti_PCSamplingConfigurationInfo);
SAME_AT(abi::PcConfiguration, value, CUpti_PCSamplingConfigurationInfo, attributeData);
SAME_PARAMS(PcConfigure, configurations, CUpti_PCSamplingConfigurationInfoParams,
            CUpti_PCSamplingConfigurationInfoParamsSize);
SAME_PARAMS(PcContext, context, CUpti_PCSamplingEnableParams, CUpti_PCSamplingEnableParamsSize);
SAME_PARAMS(PcGetData, samples, CUpti_PCSamplingGetDataParams, CUpti_PCSamplingGetDataParamsSize);
SAME_PARAMS(PcReasonCount, count, CUpti_PCSamplingGetNumStallReasonsParams,
            CUpti_PCSamplingGetNumStallReasonsParamsSize);
SAME_PARAMS(PcReasons, names, CUpti_PCSamplingGetStallReasonsParams,
            CUpti_PCSamplingGetStallReasonsParamsSize);
SAME_NUMBER(abi::kKernelSerialized, CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED);
SAME_NUMBER(abi::kCollectionMode, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE);
SAME_NUMBER(abi::kDataBuffer, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER);
SAME_NUMBER(abi::kReasonNameBytes, CUPTI_STALL_REASON_STRING_SIZE);

TEST(CaptureAbi, AgreesWithTheToolkitsHeaders) { SUCCEED() << "held while compiling"; }

}  // namespace
}  // namespace heddle::capture
